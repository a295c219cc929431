import type { Logger as CarillonLogger } from "@carillon/sdk";
import { Logger } from "@nestjs/common";

/** Writes Carillon's lines to the logger of the app: the message, its details as JSON, and the stack of an error apart. */
export function nestLogger(logger = new Logger("Carillon")): CarillonLogger {
  const line = (message: string, details: object) =>
    Object.keys(details).length === 0 ? message : `${message} ${JSON.stringify(details)}`;
  return {
    debug: (details, message) => logger.debug(line(message, details)),
    info: (details, message) => logger.log(line(message, details)),
    warn: (details, message) => logger.warn(line(message, details)),
    error: (details, message) => {
      const { error, ...rest } = details as { error?: unknown };
      logger.error(line(message, rest), ...(error === undefined ? [] : [String(error)]));
    },
  };
}
