/** Throw it if a retry is useless: the run gets no further attempt. */
export class PermanentError extends Error {
  override name = "PermanentError";
}
