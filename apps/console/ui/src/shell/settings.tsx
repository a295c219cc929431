import { useEffect, useState } from "react";
import { LOCAL_ZONE, setZone, useZone } from "../lib/time.js";
import { words } from "../words.js";

const THEME_KEY = "carillon-theme";
type Theme = keyof typeof words.shell.themes;

/** Time zone and colours, kept in this browser. */
export function Settings() {
  const zone = useZone();
  const [theme, setTheme] = useState(() => (localStorage.getItem(THEME_KEY) ?? "system") as Theme);
  useEffect(() => {
    localStorage.setItem(THEME_KEY, theme);
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return (
    <>
      <select
        className="input"
        aria-label={words.shell.zone}
        title={words.shell.zone}
        value={zone}
        onChange={(event) => setZone(event.target.value)}
      >
        {[...new Set([LOCAL_ZONE, "UTC"])].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <select
        className="input"
        aria-label={words.shell.theme}
        title={words.shell.theme}
        value={theme}
        onChange={(event) => setTheme(event.target.value as Theme)}
      >
        {Object.entries(words.shell.themes).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </>
  );
}
