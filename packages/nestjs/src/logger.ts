import type { Logger as CarillonLogger } from "@carillon/sdk";
import { Logger } from "@nestjs/common";

/**
 * Writes Carillon's lines to the logger of the app: the message, its details as JSON, and the stack of an error apart. Nest prints debug lines
 * unless told otherwise, and each run that goes well has some: they are left out.
 */
export function nestLogger(logger = new Logger("Carillon")): CarillonLogger {
  const line = (message: string, details: object) =>
    Object.keys(details).length === 0 ? message : `${message} ${JSON.stringify(details)}`;
  return {
    debug: () => {},
    info: (details, message) => logger.log(line(message, details)),
    warn: (details, message) => logger.warn(line(message, details)),
    error: (details, message) => {
      const { error, ...rest } = details as { error?: unknown };
      logger.error(line(message, rest), ...(error === undefined ? [] : [String(error)]));
    },
  };
}
