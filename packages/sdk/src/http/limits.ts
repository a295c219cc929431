/** Default limit for reading a response body, in bytes. */
export const DEFAULT_RESPONSE_BYTES = 64 * 1024;
export const MAX_RESPONSE_BYTES = 1024 * 1024;

/** Default timeout of a whole exchange, in ms. */
export const DEFAULT_TIMEOUT = 30_000;
/** An hour. */
export const MAX_TIMEOUT = 3_600_000;
