/** The fleet, live: the state of one agent, sent again after every change. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "@signalbox/client/react";
import type { DeviceStatus, Fleet } from "../agents.ts";
import "./page.css";

function Page() {
  const { state, status } = useAgent<Fleet>({ agent: "Fleet", name: "all" });
  const devices = Object.values(state?.devices ?? {}).sort((a, b) => a.name.localeCompare(b.name));
  return (
    <main>
      <header>
        <h1>Device fleet</h1>
        <p className="status" data-status={status} role="status">
          {status === "open" ? `live, ${state?.online} of ${devices.length} online` : "connecting"}
        </p>
      </header>
      <ul>
        {devices.map((device) => (
          <Device key={device.name} {...device} />
        ))}
      </ul>
    </main>
  );
}

function Device({ name, isOnline, temperature, lastSeen }: DeviceStatus) {
  return (
    <li aria-label={name} data-online={isOnline}>
      <h2>{name}</h2>
      <p className="temperature">{temperature?.toFixed(1) ?? "–"} °C</p>
      <p className="seen">
        <b>{isOnline ? "online" : "silent"}</b> {isOnline ? "last report" : "since"}{" "}
        {new Date(lastSeen).toLocaleTimeString()}
      </p>
    </li>
  );
}

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Page />
    </StrictMode>,
  );
}
