/** The scripts of `signalbox completion` in real shells, with the names of a real server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findShell, type Shell, shellIsMissing } from "../support/shell-path.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let folder: string;
let server: TestServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-completion-"));
  symlinkSync(
    join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js"),
    join(folder, "signalbox"),
  );
  writeFileSync(join(folder, "zz-own.config.json"), "{}");
  server = await startTestServer();
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "staging" });
  // Whoever sends webhooks names instances: the name must not become a command of the shell.
  await server.api("POST", "/agents/webhook-agent/evil%24(touch%20x)/rpc/getEvents", []);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a script of the shell in the folder; `signalbox` is the command line of this repository. */
async function run(shell: string, args: readonly string[], environment: Record<string, string> = {}) {
  const path = [folder, dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const child = spawn(shell, args, {
    cwd: folder,
    env: {
      ...process.env,
      PATH: path,
      HOME: folder,
      TERM: "dumb",
      SIGNALBOX_URL: server.url,
      SIGNALBOX_TOKEN: ROOT_TOKEN,
      ...environment,
    },
  });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  await once(child, "close");
  expect(err).toBe("");
  return out.trimEnd().split("\n");
}

function requireShell(shell: Shell): string {
  const path = findShell(shell);
  if (path === null) throw new Error(shellIsMissing(shell));
  return path;
}

/** Completion waits half a second for names and then goes on without them: on a busy machine that may happen, but not always. */
async function expectCompletions(shell: string, args: readonly string[], expected: readonly string[]) {
  const lines = async () => (await run(shell, args)).map((line) => line.trimEnd());
  await expect.poll(lines).toEqual(expected);
}

it("bash completes commands, values, files and names, quoted", async () => {
  const script = `
    source <(signalbox completion bash)
    try() { COMP_WORDS=(signalbox "$@"); COMP_CWORD=$#; _signalbox; echo "\${COMPREPLY[*]}"; }
    try gatew
    try gateway set staging --backoff = e
    try gateway show s
    try serve --config zz
    try agents show webhook-agent evil`;
  await expectCompletions(
    "bash",
    ["-c", script],
    ["gateway", "exponential", "staging", "zz-own.config.json", String.raw`evil\$\(touch\ x\)`],
  );
});

it("zsh completes commands, values, files and names, quoted", async () => {
  const shell = requireShell("zsh");
  // An interactive shell in a pseudo-terminal. After each tab, a key prints the line.
  const start = [
    "PS1= RPS1= PROMPT_EOL_MARK=",
    "autoload -Uz compinit; compinit -D -u",
    "source <(signalbox completion zsh)",
    'show() { print -r -- "LINE<$BUFFER>"; zle kill-buffer; }',
    "zle -N show; bindkey '^X' show; print RE''ADY",
  ].join("; ");
  const script = `
    zmodload zsh/zpty
    zpty z "$1" -f -i
    zpty -w z "$2"
    zpty -r z line '*READY*'
    shift 2
    for typed in "$@"; do
      zpty -w -n z "signalbox $typed"$'\\t\\x18'
      zpty -r z line '*LINE<*>*'
      print -r -- "\${\${line##*LINE<}%%>*}"
    done
    zpty -d z`;
  const typed = ["gatew", "gateway set staging --backoff=e", "gateway show s", "serve --config zz"];
  const args = ["-f", "-c", script, "zsh", shell, start, ...typed, "agents show webhook-agent evil"];
  await expectCompletions(shell, args, [
    "signalbox gateway",
    "signalbox gateway set staging --backoff=exponential",
    "signalbox gateway show staging",
    "signalbox serve --config zz-own.config.json",
    String.raw`signalbox agents show webhook-agent evil\$\(touch\ x\)`,
  ]);
});

it("fish completes commands with descriptions, values, files and names", async () => {
  const script = `
    source (signalbox completion fish | psub)
    complete -C "signalbox gatew"
    complete -C "signalbox gateway set staging --backoff=e"
    complete -C "signalbox gateway show s"
    complete -C "signalbox serve --config zz"
    complete -C "signalbox agents show webhook-agent evil"`;
  // Fish quotes what it inserts.
  await expectCompletions(
    requireShell("fish"),
    ["-N", "-c", script],
    [
      "gateway\tGateways, their settings and tokens.",
      "--backoff=exponential",
      "staging",
      "zz-own.config.json",
      "evil$(touch x)",
    ],
  );
});

it("without a server only names are missing, and nothing is printed or created", async () => {
  const script = `signalbox __complete -- gateway show s; signalbox __complete -- gateway sh`;
  const nowhere = { SIGNALBOX_URL: "http://127.0.0.1:9" };
  expect(await run("bash", ["-c", script], nowhere)).toEqual(["show\tShow the settings of a gateway."]);
  expect(
    await run("bash", ["-c", `${script}; test -e .signalbox || echo "no folder"`], { SIGNALBOX_URL: "" }),
  ).toEqual(["show\tShow the settings of a gateway.", "no folder"]);
});
