import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { ROOT } from "./lib/api.js";
import { preload } from "./lib/later.js";
import { queryClient } from "./lib/query.js";
import { mayLeave } from "./lib/unsaved.js";
import { App } from "./shell/app.js";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/controls.css";
import "./styles/lists.css";
import "./styles/overlays.css";

/** Wait in ms before the other pages are fetched: the first one needs the processor for its own answers. */
const SOON_MS = 1_000;

createRoot(document.getElementById("app")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Router
        base={ROOT.replace(/\/$/, "")}
        aroundNav={(navigate, to, options) => {
          if (mayLeave()) navigate(to, options);
        }}
      >
        <App />
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);

/** Fetches the other pages once the browser is idle and no answer is awaited. */
function preloadLater() {
  const begin = () => (queryClient.isFetching() > 0 ? preloadLater() : void preload());
  setTimeout(() => ("requestIdleCallback" in window ? requestIdleCallback(begin) : begin()), SOON_MS);
}
preloadLater();
