/** The text of each Lua file by its name, as `pause.lua`; of a library as `lib/task.lua`. Made by generate.mjs. */
export declare const TEXTS: Readonly<Record<string, string>>;
