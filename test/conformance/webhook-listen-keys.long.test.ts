/**
 * `signalbox webhooks listen` over a longer time: its keys, pressed in a pseudo-terminal (`script` of util-linux), and a server that cannot be reached for
 * some seconds.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createSocketServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { CLI } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

it("select a delivery, show it, send it again, open its page and end the command", async () => {
  const server = await startTestServer({ environment: { WEBHOOK_SECRET: SECRET } });
  cleanups.push(() => server.stop());
  const attempts: string[] = [];
  const laptop = createServer((request, response) => {
    attempts.push(`${request.url ?? ""} ${String(request.headers["signalbox-attempt"])}`);
    response.end("seen on the laptop");
  });
  await new Promise<void>((resolve) => laptop.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => laptop.close().closeAllConnections());
  const { port } = laptop.address() as AddressInfo;

  const terminal = openTerminal(
    [process.execPath, CLI, "webhooks", "listen", `http://127.0.0.1:${port}`, "generic", "--name", "keys"],
    { SIGNALBOX_URL: server.url, SIGNALBOX_TOKEN: ROOT_TOKEN, NO_COLOR: "1" },
  );
  await terminal.shows(/keys: ↑↓ select/);
  for (const type of ["first", "second"]) {
    await sendGeneric(server.url, "device", { id: type, type });
    await terminal.shows(new RegExp(`${type} → 200`));
  }

  terminal.press("d");
  await terminal.shows(/"type":"second"[\s\S]*answer 200[\s\S]*seen on the laptop/);
  terminal.press("\u001B[A");
  await terminal.shows(/> ✓ .* first → 200/);
  // Some terminals send the arrows so.
  terminal.press("\u001BOB");
  await terminal.shows(/> ✓ .* second → 200/);
  terminal.press("\u001B[A");
  terminal.press("r");
  await terminal.shows(/sent again: [\s\S]*first → 200 .*\(attempt 2\)/);
  expect(attempts.map((line) => line.split(" ")[1])).toEqual(["1", "1", "2"]);
  terminal.press("o");
  await terminal.shows(/\/dashboard\/accounts\/default\/webhooks\/events\/\S+/);
  // What no key means changes nothing.
  terminal.press("x\u0000é");
  terminal.press("q");
  await terminal.shows(/is kept for keys/);
  expect(await terminal.ended).toBe(0);
  // All answers were reported before the end.
  const { body } = await server.api("GET", "/accounts/default/webhooks/events?source=generic&route=keys");
  expect(body.result).toMatchObject([{ state: "delivered" }, { state: "delivered" }]);
});

it("connects again by itself: after the server could not be reached, and after the server has forgotten the listener", async () => {
  const server = await startTestServer({ environment: { WEBHOOK_SECRET: SECRET } });
  cleanups.push(() => server.stop());
  const seen: string[] = [];
  const laptop = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => seen.push((JSON.parse(chunk.toString()) as { id: string }).id));
    request.on("end", () => response.end());
  });
  await new Promise<void>((resolve) => laptop.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => laptop.close().closeAllConnections());
  const { port } = laptop.address() as AddressInfo;
  const path = await openPath(new URL(server.url));

  const words = ["webhooks", "listen", `http://127.0.0.1:${port}`, "generic", "--name", "moving"];
  const running = runCommand({ ...server, url: path.url }, [...words, "--limit", "3"]);
  const base = "/accounts/default/webhooks";
  const exists = () =>
    waitUntil(
      () => server.api("GET", `${base}/listeners/moving`),
      ({ status }) => status === 200,
    );
  const delivered = (count: number) =>
    waitUntil(
      () => server.api("GET", `${base}/events?route=moving&state=delivered`),
      ({ body }) => (body.result as unknown[]).length === count,
    );
  await exists();
  await sendGeneric(server.url, "device", { id: "first", type: "t" });
  await delivered(1);
  path.cut();
  await sendGeneric(server.url, "device", { id: "second", type: "t" });
  await waitUntil(path.refused, (count) => count >= 2);
  path.mend();
  await delivered(2);
  await server.api("DELETE", `${base}/listeners/moving`);
  await exists();
  await sendGeneric(server.url, "device", { id: "third", type: "t" });
  const { code, out, err } = await running;
  expect([code, seen]).toEqual([0, ["first", "second", "third"]]);
  expect(out.split("\n").filter((line) => line.includes("t → 200"))).toHaveLength(3);
  expect(err).toContain("the server cannot be reached; trying again in");
  expect(err).toContain("connected again");
});

/** The way to a server, which can be cut. */
async function openPath(to: URL) {
  const sockets = new Set<Socket>();
  let isOpen = true;
  let refused = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };
  const path = createSocketServer((client) => {
    keep(client);
    if (!isOpen) {
      refused += 1;
      client.destroy();
      return;
    }
    const server = keep(connect(Number(to.port), to.hostname));
    client.on("close", () => server.destroy());
    server.on("close", () => client.destroy());
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => path.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    isOpen = false;
    for (const socket of sockets) socket.destroy();
  };
  cleanups.push(() => {
    cut();
    path.close();
  });
  return {
    url: `http://127.0.0.1:${(path.address() as AddressInfo).port}`,
    cut,
    mend: () => (isOpen = true),
    refused: () => refused,
  };
}

function openTerminal(command: readonly string[], environment: Readonly<Record<string, string>>) {
  // Without a path, no browser of this machine opens the page.
  const line = `PATH= ${command.map((part) => `'${part}'`).join(" ")}`;
  // Ends with the code of the command.
  const args = ["--quiet", "--flush", "--return", "--command", line, "/dev/null"];
  const child = spawn("script", args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, SHELL: "/bin/sh", ...environment },
  });
  cleanups.push(() => child.kill("SIGKILL"));
  let shown = "";
  let seen = 0;
  child.stdout.on("data", (chunk: Buffer) => (shown += chunk.toString()));
  return {
    press: (keys: string) => child.stdin.write(keys),
    /** Waits for output after what was waited for last. */
    async shows(pattern: RegExp): Promise<void> {
      const find = () => pattern.exec(shown.slice(seen));
      const found = await waitUntil(find, (match) => match !== null);
      seen += (found?.index ?? 0) + (found?.[0].length ?? 0);
    },
    ended: once(child, "exit").then(([code]) => code as number | null),
  };
}
