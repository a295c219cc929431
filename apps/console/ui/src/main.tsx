import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { ROOT } from "./lib/api.js";
import { queryClient } from "./lib/query.js";
import { App } from "./shell/app.js";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/controls.css";
import "./styles/lists.css";
import "./styles/overlays.css";

createRoot(document.getElementById("app")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Router base={ROOT.replace(/\/$/, "")}>
        <App />
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);
