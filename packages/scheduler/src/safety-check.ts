import { CarillonError } from "@carillon/core";
import { settingText, type UnsafeSetting } from "@carillon/core/internal";

/** The error of a node whose Redis may lose tasks; undefined if it does not, as far as it shows its settings. */
export function refusal(settings: readonly UnsafeSetting[]): CarillonError | undefined {
  const grave = settings.filter(({ code }) => code !== "UNKNOWN_SETTINGS");
  if (grave.length === 0) return undefined;
  return new CarillonError("REDIS_UNSAFE", grave.map(settingText).join(" "), {
    remedy:
      "Set maxmemory-policy noeviction and appendonly yes; or accept the risk with unsafeRedis: warn (CARILLON_UNSAFE_REDIS=warn).",
  });
}
