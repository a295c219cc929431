import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import {
  keepPreviousData,
  QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { notify } from "../parts/notices.js";
import { ApiError, call, isGet } from "./api.js";
import { failsForAll, POLL_MS, pollInterval, type Query, useLive } from "./live.js";

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
  /** Fields of the input that move with time: an answer to other values of them is still right. */
  moving?: readonly string[];
  /** Reads at this interval in ms, not because of events; `false`: reads once. */
  refresh?: number | false;
  /** Longest time between two reads, in ms, for answers that change with time alone. */
  every?: number;
  /** Age in seconds of an answer that is new enough. */
  maxAge?: number;
}

/** An answer as a page may use it. */
export interface Answer<Data> {
  /** The answer to the present question; undefined until it has arrived. */
  readonly data: Data | undefined;
  /** The answer to the question before, until that one has arrived. Only `Loaded` shows it, dimmed. */
  readonly former?: Data | undefined;
  readonly error: Error | null;
  readonly refetch?: () => unknown;
}

interface Read<Data> extends Answer<Data> {
  readonly refetch: () => unknown;
  readonly isFetching: boolean;
}

/** Separates the answer to the present question from the one to the question before. */
function useAnswer<Data>(
  result: Read<Data> & { readonly isPlaceholderData: boolean },
  input: object | undefined,
  moving: readonly string[] = [],
): Read<Data> {
  const { data, error, refetch, isFetching, isPlaceholderData } = result;
  const question = JSON.stringify({ ...input, ...Object.fromEntries(moving.map((name) => [name, null])) });
  const answered = useRef<string>(undefined);
  if (data !== undefined && !isPlaceholderData) answered.current = question;
  const isFormer = isPlaceholderData && answered.current !== question;
  return {
    data: isFormer ? undefined : data,
    former: isFormer ? data : undefined,
    error,
    refetch,
    isFetching,
  };
}

/**
 * The answer of an operation that changes nothing. Reads it again when events concern it, and from time to time; one that has a body,
 * only for another input, or after an outage.
 *
 * @param input undefined: not asked yet
 */
export function useCall<Name extends OperationName>(
  name: Name,
  input: InputTo<Name> | undefined,
  { refresh = isGet(name) ? undefined : false, every, maxAge, moving }: CallOptions = {},
): Read<AnswerTo<Name>> {
  // The interval changes as soon as events arrive.
  useLive();
  const result = useQuery<AnswerTo<Name>, Error>({
    queryKey: [name, input],
    queryFn: ({ signal }) => call(name, input as InputTo<Name>, { signal, maxAge }),
    placeholderData: keepPreviousData,
    enabled: input !== undefined,
    ...(isGet(name) ? {} : { retry: false }),
    ...(refresh === undefined ? {} : { meta: { live: false } }),
    refetchInterval: (query: Query) =>
      failsForAll(query.state.error) ? POLL_MS.alone : (every ?? refresh ?? pollInterval(query)),
  });
  return useAnswer(result, input, moving);
}

/** Operations that answer page by page. */
type Paged = {
  [Name in OperationName]: AnswerTo<Name> extends { cursor?: string | undefined } ? Name : never;
}[OperationName];

/** Reads a list page by page. @param input undefined: not asked */
export function usePages<Name extends Paged>(name: Name, input: InputTo<Name> | undefined) {
  const result = useInfiniteQuery({
    queryKey: [name, input, "pages"],
    queryFn: ({ pageParam, signal }) =>
      call(name, { ...input, cursor: pageParam } as InputTo<Name>, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => (last as { cursor?: string }).cursor,
    placeholderData: keepPreviousData,
    enabled: input !== undefined,
  });
  const answer = useAnswer(result, input);
  const { fetchNextPage, isFetchingNextPage } = result;
  return {
    ...answer,
    hasNextPage: answer.former === undefined && result.hasNextPage,
    isFetchingNextPage,
    fetchNextPage,
  };
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
