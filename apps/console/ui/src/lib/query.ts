import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import {
  keepPreviousData,
  QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { notify } from "../parts/notices.js";
import { ApiError, call, isGet } from "./api.js";
import { pollInterval, useLive } from "./live.js";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      refetchInterval: pollInterval,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status < 500),
    },
  },
});

/** Delay after the last key before the server is asked, in ms. */
const PATIENCE_MS = 300;

interface CallOptions {
  /** Reads at this interval in ms, not because of events; `false`: reads once. */
  refresh?: number | false;
  /** Longest time between two reads, in ms, for answers that change with time alone. */
  every?: number;
  /** Age in seconds of an answer that is new enough. */
  maxAge?: number;
}

/**
 * The answer of an operation that changes nothing. Reads it again when events concern it, and from time to time; one that has a body,
 * only for another input. Old data stay until new ones arrive.
 *
 * @param input undefined: not asked yet
 */
export function useCall<Name extends OperationName>(
  name: Name,
  input: InputTo<Name> | undefined,
  { refresh = isGet(name) ? undefined : false, every, maxAge }: CallOptions = {},
) {
  // The interval changes as soon as events arrive.
  useLive();
  return useQuery<AnswerTo<Name>, Error>({
    queryKey: [name, input],
    queryFn: ({ signal }) => call(name, input as InputTo<Name>, { signal, maxAge }),
    placeholderData: keepPreviousData,
    enabled: input !== undefined,
    ...(isGet(name) ? {} : { retry: false }),
    ...(refresh === undefined ? {} : { refetchInterval: refresh, meta: { live: false } }),
    ...(every === undefined ? {} : { refetchInterval: every }),
  });
}

/** Operations that answer page by page. */
type Paged = {
  [Name in OperationName]: AnswerTo<Name> extends { cursor?: string | undefined } ? Name : never;
}[OperationName];

/** Reads a list page by page. */
export function usePages<Name extends Paged>(name: Name, input: InputTo<Name>) {
  return useInfiniteQuery({
    queryKey: [name, input, "pages"],
    queryFn: ({ pageParam, signal }) =>
      call(name, { ...input, cursor: pageParam } as InputTo<Name>, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => (last as { cursor?: string }).cursor,
    placeholderData: keepPreviousData,
  });
}

/** The value, once it has not changed for a while. */
export function useLater<Value>(value: Value): Value {
  const [later, setLater] = useState(value);
  const key = JSON.stringify(value);
  // biome-ignore lint/correctness/useExhaustiveDependencies: its JSON says whether it changed
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return later;
}

/** A change. Afterwards everything shown is read again. An error is shown as a notice, unless the caller shows it. */
export function useAct<Input, Output>(
  act: (input: Input) => Promise<Output>,
  options: { quiet?: boolean; onDone?: (output: Output, input: Input) => void } = {},
) {
  const client = useQueryClient();
  return useMutation<Output, Error, Input>({
    mutationFn: act,
    onSuccess: (output, input) => options.onDone?.(output, input),
    onError: (error) => {
      if (!options.quiet) notify("bad", error.message);
    },
    onSettled: () => client.invalidateQueries(),
  });
}
