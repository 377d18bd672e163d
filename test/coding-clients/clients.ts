/**
 * The clients, at the versions that were tested: how each is told about a gateway, started without a terminal and continued, and what its
 * tools are called. Settings are those of docs/guides/coding-agents.md; further ones only switch off what needs another network.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ModelDialect, ToolUse } from "../peers/scripted-model.ts";

/** What a client is told about the gateway. */
export interface Setup {
  /** Without a path. */
  readonly url: string;
  readonly token: string;
  readonly model: string;
  readonly home: string;
  readonly work: string;
}

export interface CodingClient {
  readonly name: string;
  readonly packageName: string;
  readonly version: string;
  readonly program: string;
  /** The path at which it calls models. */
  readonly path: RegExp;
  /** Dialects of providers, other than its own. The first also refuses. */
  readonly targets: readonly [ModelDialect, ...ModelDialect[]];
  /** What it shows when the gateway refuses, and how often it calls at most until it gives up. */
  readonly refusals: { readonly budget: RegExp; readonly token: RegExp; readonly calls: number };
  /** Writes its settings, and returns its environment. */
  configure(setup: Setup): Promise<Readonly<Record<string, string>>>;
  begin(prompt: string, setup: Setup): readonly string[];
  /** Continues the last session. */
  resume(prompt: string, setup: Setup): readonly string[];
  readonly tools: {
    read(file: string): ToolUse;
    edit(file: string, from: string, to: string): ToolUse;
    write(file: string, text: string): ToolUse;
    run(command: string): ToolUse;
  };
}

const SPEND = /Spend limit exceeded: rule token budget-month/;
const TOKEN = /401|[Uu]nauthorized|[Aa]uthenticat/;

export const claudeCode: CodingClient = {
  name: "Claude Code",
  packageName: "@anthropic-ai/claude-code",
  version: "2.1.327",
  program: "claude",
  path: /^\/v1\/messages\?beta=true$/,
  targets: ["chat", "gemini"],
  refusals: { budget: SPEND, token: TOKEN, calls: 1 },
  configure: ({ url, token, model }) =>
    Promise.resolve({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: token,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_SMALL_FAST_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    }),
  begin: (prompt) => ["-p", prompt, "--allowedTools", "Read,Edit,Write,Bash"],
  resume: (prompt) => ["-c", "-p", prompt, "--allowedTools", "Read,Edit,Write,Bash"],
  tools: {
    read: (file) => ({ name: "Read", input: { file_path: file } }),
    edit: (file, from, to) => ({
      name: "Edit",
      input: { file_path: file, old_string: from, new_string: to },
    }),
    write: (file, text) => ({ name: "Write", input: { file_path: file, content: text } }),
    run: (command) => ({ name: "Bash", input: { command, description: "Runs it" } }),
  },
};

export const codex: CodingClient = {
  name: "Codex",
  packageName: "@openai/codex",
  version: "0.169.0",
  program: "codex",
  path: /^\/v1\/responses$/,
  targets: ["messages", "gemini"],
  refusals: { budget: /429 Too Many Requests/, token: TOKEN, calls: 6 },
  async configure({ url, token, model, home }) {
    await writeTo(
      join(home, ".codex/config.toml"),
      `model = "${model}"
model_provider = "signalbox"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.signalbox]
name = "Signalbox"
base_url = "${url}/v1"
env_key = "GATEWAY_TOKEN"
wire_api = "responses"
`,
    );
    return { GATEWAY_TOKEN: token };
  },
  begin: (prompt) => ["exec", ...CODEX_OPTIONS, prompt],
  resume: (prompt) => ["exec", ...CODEX_OPTIONS, "resume", "--last", prompt],
  tools: {
    read: (file) => ({ name: "exec_command", input: { cmd: `cat ${file}` } }),
    edit: (file, from, to) => patch(`*** Update File: ${file}\n@@\n-${from}\n+${to}`),
    write: (file, text) => patch(`*** Add File: ${file}\n+${text}`),
    run: (command) => ({ name: "exec_command", input: { cmd: command } }),
  },
};
/** Codex carries it out by itself; for models that it does not know it offers no tool for it. */
function patch(text: string): ToolUse {
  const cmd = `apply_patch <<'EOF'\n*** Begin Patch\n${text}\n*** End Patch\nEOF`;
  return { name: "exec_command", input: { cmd } };
}
const CODEX_OPTIONS = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];

export const geminiCli: CodingClient = {
  name: "Gemini CLI",
  packageName: "@google/gemini-cli",
  version: "0.61.0",
  program: "gemini",
  path: /^\/v1beta\/models\/.*:streamGenerateContent/,
  targets: ["messages", "chat"],
  refusals: { budget: SPEND, token: TOKEN, calls: 1 },
  async configure({ url, token, home }) {
    await writeTo(
      join(home, ".gemini/settings.json"),
      JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      }),
    );
    return { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: token };
  },
  begin: (prompt, { model }) => ["-m", model, "--yolo", "--skip-trust", "-p", prompt],
  resume: (prompt, { model }) => ["-m", model, "--yolo", "--skip-trust", "-r", "latest", "-p", prompt],
  tools: {
    read: (file) => ({ name: "read_file", input: { file_path: file } }),
    edit: (file, from, to) => ({
      name: "replace",
      input: { file_path: file, instruction: "Change it", old_string: from, new_string: to },
    }),
    write: (file, text) => ({ name: "write_file", input: { file_path: file, content: text } }),
    run: (command) => ({ name: "run_shell_command", input: { command, description: "Runs it" } }),
  },
};

export const copilotCli: CodingClient = {
  name: "Copilot CLI",
  packageName: "@github/copilot",
  version: "1.0.102",
  program: "copilot",
  path: /^\/v1\/chat\/completions$/,
  targets: ["messages", "gemini"],
  refusals: { budget: SPEND, token: TOKEN, calls: 3 },
  configure: ({ url, token, model }) =>
    Promise.resolve({
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: token,
      COPILOT_MODEL: model,
      COPILOT_OFFLINE: "true",
    }),
  begin: (prompt) => ["--allow-all-tools", "-p", prompt],
  resume: (prompt) => ["--continue", "--allow-all-tools", "-p", prompt],
  tools: {
    read: (file) => ({ name: "view", input: { path: file } }),
    edit: (file, from, to) => ({ name: "edit", input: { path: file, old_str: from, new_str: to } }),
    write: (file, text) => ({ name: "create", input: { path: file, file_text: text } }),
    run: (command) => ({ name: "bash", input: { command, description: "Runs it" } }),
  },
};

export const opencode: CodingClient = {
  name: "opencode",
  packageName: "opencode-ai",
  version: "1.18.33",
  program: "opencode",
  path: /^\/v1\/chat\/completions$/,
  targets: ["messages", "gemini"],
  refusals: { budget: SPEND, token: TOKEN, calls: 12 },
  async configure({ url, token, model, home }) {
    await writeTo(
      join(home, ".config/opencode/opencode.json"),
      JSON.stringify({
        model: `signalbox/${model}`,
        small_model: `signalbox/${model}`,
        provider: {
          signalbox: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${url}/v1`, apiKey: "{env:GATEWAY_TOKEN}" },
            models: { [model]: {} },
          },
        },
        autoupdate: false,
        share: "disabled",
      }),
    );
    return { GATEWAY_TOKEN: token, OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" };
  },
  begin: (prompt) => ["run", "--auto", prompt],
  resume: (prompt) => ["run", "--auto", "--continue", prompt],
  tools: {
    read: (file) => ({ name: "read", input: { filePath: file } }),
    edit: (file, from, to) => ({ name: "edit", input: { filePath: file, oldString: from, newString: to } }),
    write: (file, text) => ({ name: "write", input: { filePath: file, content: text } }),
    run: (command) => ({ name: "bash", input: { command, description: "Runs it" } }),
  },
};

export const qwenCode: CodingClient = {
  name: "Qwen Code",
  packageName: "@qwen-code/qwen-code",
  version: "0.24.4",
  program: "qwen",
  path: /^\/v1\/chat\/completions$/,
  targets: ["messages", "gemini"],
  refusals: { budget: SPEND, token: TOKEN, calls: 10 },
  async configure({ url, token, model, home }) {
    await writeTo(
      join(home, ".qwen/settings.json"),
      JSON.stringify({
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      }),
    );
    return { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: token, OPENAI_MODEL: model };
  },
  begin: (prompt) => ["--yolo", prompt],
  resume: (prompt) => ["--yolo", "--continue", prompt],
  tools: {
    read: (file) => ({ name: "read_file", input: { file_path: file } }),
    edit: (file, from, to) => ({
      name: "edit",
      input: { file_path: file, old_string: from, new_string: to },
    }),
    write: (file, text) => ({ name: "write_file", input: { file_path: file, content: text } }),
    run: (command) => ({ name: "run_shell_command", input: { command, is_background: false } }),
  },
};

export const continueCli: CodingClient = {
  name: "Continue",
  packageName: "@continuedev/cli",
  version: "1.5.47",
  program: "cn",
  path: /^\/v1\/chat\/completions$/,
  targets: ["messages", "gemini"],
  refusals: { budget: SPEND, token: TOKEN, calls: 14 },
  async configure({ url, token, model, home }) {
    await writeTo(
      join(home, ".continue/config.yaml"),
      `name: Signalbox
version: 1.0.0
schema: v1
models:
  - name: Signalbox
    provider: openai
    model: ${model}
    apiBase: ${url}/v1
    apiKey: ${token}
    roles: [chat, edit, apply]
    capabilities: [tool_use]
`,
    );
    return { CONTINUE_TELEMETRY_ENABLED: "0" };
  },
  begin: (prompt, { home }) => ["--config", join(home, ".continue/config.yaml"), "--auto", "-p", prompt],
  resume: (prompt, { home }) => [
    "--config",
    join(home, ".continue/config.yaml"),
    "--auto",
    "--resume",
    "-p",
    prompt,
  ],
  tools: {
    read: (file) => ({ name: "Read", input: { filepath: file } }),
    edit: (file, from, to) => ({
      name: "MultiEdit",
      input: { file_path: file, edits: [{ old_string: from, new_string: to }] },
    }),
    write: (file, text) => ({ name: "Write", input: { filepath: file, content: text } }),
    run: (command) => ({ name: "Bash", input: { command } }),
  },
};

/** Each has a file of tests, named after it. */
export const CODING_CLIENTS: readonly CodingClient[] = [
  claudeCode,
  codex,
  geminiCli,
  copilotCli,
  opencode,
  qwenCode,
  continueCli,
];

async function writeTo(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
