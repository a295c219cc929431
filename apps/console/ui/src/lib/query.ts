import {
  keepPreviousData,
  QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { notify } from "../parts/notices.js";
import { ApiError, api, type Query } from "./api.js";
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

export interface GetOptions {
  enabled?: boolean;
  /** Reads at this interval in ms, not because of events; `false`: reads once. */
  refresh?: number | false;
  /** Longest time between two reads, in ms, for answers that change with time alone. */
  every?: number;
}

/**
 * Reads one address of the API, again when events concern it, and from time to time. Old data stay until new ones
 * arrive.
 */
export function useGet<T>(
  path: string,
  query: Query = {},
  { enabled = true, refresh, every }: GetOptions = {},
) {
  // The interval changes as soon as events arrive.
  useLive();
  return useQuery<T, Error>({
    queryKey: [path, query],
    queryFn: ({ signal }) => api<T>("GET", path, { query, signal }),
    placeholderData: keepPreviousData,
    enabled,
    ...(refresh === undefined ? {} : { refetchInterval: refresh, meta: { live: false } }),
    ...(every === undefined ? {} : { refetchInterval: every }),
  });
}

/** A query with a body, which changes nothing. Sent again when the body or `since` changes. */
export function useAsk<T>(path: string, body: unknown, { enabled = true, since }: AskOptions = {}) {
  return useQuery<T, Error>({
    queryKey: [path, body, since],
    queryFn: ({ signal }) => api<T>("POST", path, { body, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: false,
    meta: { live: false },
    retry: false,
    enabled,
  });
}

export interface AskOptions {
  enabled?: boolean;
  since?: unknown;
}

/** Reads a list page by page. `rows` picks them out of an answer. */
export function useGetPages<Page extends { cursor?: string | undefined }>(path: string, query: Query) {
  return useInfiniteQuery({
    queryKey: [path, query, "pages"],
    queryFn: ({ pageParam, signal }) =>
      api<Page>("GET", path, { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.cursor,
    placeholderData: keepPreviousData,
  });
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
