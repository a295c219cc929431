/** A bell: the logo of the console and of the browser's tab. */
const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#1f4e5f"/>
<path d="M7 22.5c2.2-2 2.6-4.3 2.6-7.7a6.4 6.4 0 0 1 12.8 0c0 3.4.4 5.7 2.6 7.7zM16 8.2V5.8"
  fill="none" stroke="#f4c95d" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"/>
<circle cx="16" cy="25.6" r="1.9" fill="#f4c95d"/>
</svg>`;

const DOTS: Readonly<Record<string, string>> = { stopped: "#e5484d", behind: "#f5a524", failing: "#f5a524" };

/** The logo, with a dot in its corner in a state that is not good. */
export function logo(state: string): string {
  const dot = `<circle cx="24" cy="8" r="7" fill="${DOTS[state]}" stroke="#fff" stroke-width="2"/>`;
  return Object.hasOwn(DOTS, state) ? LOGO.replace("</svg>", `${dot}\n</svg>`) : LOGO;
}

/** Style of the sign-in form, a file of its own because of the CSP. */
export const LOGIN_STYLE = `
:root { color-scheme: light dark }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 16px/1.5 system-ui, sans-serif;
  background: #f3f5f6; color: #1b2a30 }
main { box-sizing: border-box; width: min(26rem, calc(100vw - 2rem)); padding: 2rem; border-radius: 12px; background: #fff;
  box-shadow: 0 1px 3px rgb(0 0 0 / .16) }
h1 { display: flex; gap: .6rem; align-items: center; margin: 0 0 1rem; font-size: 1.35rem }
label { display: block; margin-bottom: .35rem }
input { box-sizing: border-box; width: 100%; padding: .55rem .7rem; font: inherit; border: 1px solid #9fb0b8;
  border-radius: 7px; background: transparent; color: inherit }
button { margin-top: 1rem; width: 100%; padding: .6rem; font: inherit; font-weight: 600; border: 0; border-radius: 7px;
  background: #1f4e5f; color: #fff; cursor: pointer }
[role=alert] { margin: 0 0 1rem; padding: .5rem .7rem; border-radius: 7px; background: #fbe4e1; color: #7c1d12 }
small { display: block; margin-top: 1rem; color: #5b6b72 }
@media (prefers-color-scheme: dark) {
  body { background: #12191c; color: #e4ecef } main { background: #1b2529 } small { color: #9fb0b8 }
  [role=alert] { background: #4a1d17; color: #ffd9d3 }
}`;

export interface LoginPage {
  /** Path at which the console is mounted. */
  base: string;
  /** Path below `base` to go to afterwards. */
  next: string;
  problem?: string;
  /** Already filled in. */
  token?: string;
}

export function loginPage({ base, next, problem, token }: LoginPage): string {
  return page(
    base,
    "Sign in",
    `${problem === undefined ? "" : `<p role="alert" id="problem">${escapeHtml(problem)}</p>`}
<form method="post" action="${base}/login">
<input type="hidden" name="next" value="${escapeHtml(next)}">
<label for="token">Token</label>
<input id="token" name="token" type="password" required autofocus autocomplete="current-password"${
      token === undefined ? "" : ` value="${escapeHtml(token)}"`
    }${problem === undefined ? "" : ' aria-invalid="true" aria-describedby="problem"'}>
<button>Sign in</button>
</form>
<small>It is what CARILLON_TOKEN says, or the token of another role; without CARILLON_TOKEN, the console's log holds a
sign-in address.</small>`,
  );
}

/** For links to the address: only the button signs out. */
export function logoutPage(base: string): string {
  return page(
    base,
    "Sign out",
    `<form method="post" action="${base}/logout"><button autofocus>Sign out</button></form>`,
  );
}

/**
 * For errors before a page of the console is there.
 *
 * @param message with its remedy
 * @param passes whether the error may be over in a moment: then the page tries again by itself
 */
export function errorPage(base: string, message: string, passes: boolean): string {
  const head = passes ? '<meta http-equiv="refresh" content="5">' : "";
  return page(base, "Error", `<p role="alert">${escapeHtml(message)}</p>`, head);
}

/** @param base path at which the console is mounted */
function page(base: string, title: string, content: string, head = ""): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">${head}<title>${title} · Carillon</title>
<link rel="icon" type="image/svg+xml" href="${base}/carillon.svg">
<link rel="stylesheet" href="${base}/login.css"></head>
<body><main>
<h1><img src="${base}/carillon.svg" width="32" height="32" alt="">Carillon</h1>
${content}
</main></body></html>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
