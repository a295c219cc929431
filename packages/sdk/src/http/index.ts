export { HttpError, type HttpErrorCode } from "./errors.js";
export { createGuard, type Guard, type GuardOptions, type Resolve } from "./guard.js";
export type { HttpRequestOptions, SigningKey } from "./options.js";
export type { HttpMethod, HttpPayloadSchema, HttpRequestPayload, HttpRequestSpec } from "./payload.js";
export type { HttpResult } from "./result.js";
export { type HttpResponse, type SignedRequest, sendSigned } from "./send.js";
export { signBody, type VerifyOptions, verifySignature } from "./signature.js";
export type { Statuses, StatusRange } from "./status.js";
export { httpRequest } from "./task.js";
