import { CarillonError } from "@carillon/core";
import { settingText, type UnsafeSetting } from "@carillon/core/internal";
import { type ChangedSetting, type Logger, type Store, unsafeSettings } from "@carillon/store";

/** The error of a node whose Redis may lose tasks; undefined if it does not, as far as it shows its settings. */
export function refusal(settings: readonly UnsafeSetting[]): CarillonError | undefined {
  const grave = settings.filter(isGrave);
  if (grave.length === 0) return undefined;
  return new CarillonError("REDIS_UNSAFE", grave.map(settingText).join(" "), {
    remedy:
      "Set maxmemory-policy noeviction and appendonly yes; or accept the risk with unsafeRedis: warn (CARILLON_UNSAFE_REDIS=warn).",
  });
}

/** Notices settings with which Redis may lose tasks, and that it did not have when this node started: a failover may change them. */
export class SafetyCheck {
  #accepted: ReadonlySet<string> = new Set();
  #found: readonly ChangedSetting[] = [];

  constructor(
    private readonly store: Store,
    private readonly logger: Logger,
  ) {}

  /** Reads the settings that the node starts with. */
  async atStart(): Promise<readonly UnsafeSetting[]> {
    const settings = (await this.store.info()).flatMap(unsafeSettings);
    this.#accepted = new Set(settings.map(({ code }) => code));
    return settings;
  }

  /**
   * The settings that have changed since. If Redis does not show them, those that are known.
   * @param now UTC ms of Redis time
   */
  async changed(now: number): Promise<readonly ChangedSetting[]> {
    const infos = await this.store.info().catch(() => undefined);
    if (!infos) return this.#found;
    const settings = new Map(
      infos
        .flatMap(unsafeSettings)
        .filter(isGrave)
        .map((one) => [one.code, one] as const),
    );
    const before = new Map(this.#found.map((one) => [one.code, one]));
    this.#found = [...settings.values()]
      .filter(({ code }) => !this.#accepted.has(code))
      .map((setting) => ({ ...setting, since: before.get(setting.code)?.since ?? now }));
    for (const setting of this.#found)
      if (!before.has(setting.code)) this.logger.warn({ what: setting.code }, settingText(setting));
    return this.#found;
  }
}

function isGrave(setting: UnsafeSetting): setting is Exclude<UnsafeSetting, { code: "UNKNOWN_SETTINGS" }> {
  return setting.code !== "UNKNOWN_SETTINGS";
}
