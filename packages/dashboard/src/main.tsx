import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import "@fontsource-variable/inter/index.css";
import "./styles/index.css";
import { applyTheme, readTheme } from "./theme.ts";

applyTheme(readTheme());

const root = document.getElementById("root");
if (root === null) throw new Error('index.html has no element with the id "root"');
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
