/**
 * Coding clients as they are installed from npm, on a gateway whose providers speak other dialects than the client. Each runs a task over
 * several turns of the model, continues its session with a second prompt, and meets refusals. A file for each client, because they take minutes. One
 * client of each dialect is a long test; further ones of the same dialect run every day (`*.daily.test.ts`).
 *
 * The versions are those of `clients.ts`, so that an unchanged commit has an unchanged result; `npm run clients` tries the newest ones, with
 * `CODING_CLIENTS=latest`.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  type Conversation,
  INPUT_TOKENS,
  type ModelAnswer,
  type ModelDialect,
  OUTPUT_TOKENS,
  type ToolUse,
} from "../peers/scripted-model.ts";
import { readLogs } from "../support/gateway.ts";
import type { CodingClient, Setup } from "./clients.ts";
import { fetchClient } from "./fetch-client.ts";
import { HAS_OWN_NETWORK, runClient } from "./run-client.ts";
import { openStage, type Stage, TARGETS } from "./stage.ts";

const WANTED = process.env["CODING_CLIENTS"];

const FIRST_PROMPT = "Make the colour of the notes green.";
const SECOND_PROMPT = "Now make a file of your own.";
const TITLE = "Green notes";
/**
 * It ends well after it printed: terminals of clients drop what they have not read 200 ms after the end of a command, and a client that is
 * held up for longer loses all of it.
 */
const PRINTING = "tr a-z A-Z < notes.txt; sleep 2";

/** The tests of one client. */
export function testClient(client: CodingClient): void {
  let stage: Stage;
  let program: string;

  beforeAll(async () => {
    stage = await openStage();
    if (!HAS_OWN_NETWORK)
      process.stderr.write("The clients have no network of their own here: unshare -rn and ip are needed.\n");
  });
  beforeEach(() => {
    stage.door.requests.length = 0;
    for (const model of Object.values(stage.models)) {
      model.requests.length = 0;
      model.complaints.length = 0;
      model.afterText = () => Promise.resolve();
    }
  });
  afterAll(() => stage.close());

  beforeAll(() => {
    const fetched = fetchClient(client.packageName, client.program, WANTED ?? client.version);
    program = fetched.program;
    process.stderr.write(`${client.name} ${fetched.version}\n`);
  });

  it.each(client.targets)("does a task in several turns on a provider of the dialect %s", async (dialect) => {
    const model = stage.models[dialect];
    const setup = await prepare(stage, dialect, await stage.server.token(["gateway.run"]));
    model.script = scriptOf(client, setup.work);
    // The rest of an answer is sent when its beginning has reached the client: a gateway that holds streams back would end here.
    model.afterText = (text) => (text === TITLE ? Promise.resolve() : stage.door.streamed(text.slice(0, 5)));
    const environment = await client.configure(setup);

    const first = await runClient(program, client.begin(FIRST_PROMPT, setup), stage.door, setup, environment);
    expect(first.output).toContain("The command printed COLOUR: GREEN");
    expect(await readFile(join(setup.work, "notes.txt"), "utf8")).toBe("colour: green\n");
    const second = await runClient(
      program,
      client.resume(SECOND_PROMPT, setup),
      stage.door,
      setup,
      environment,
    );
    expect(second.output).toContain("The file is made");
    expect((await readFile(join(setup.work, "made.txt"), "utf8")).trim()).toBe("made by a model");
    expect([first.code, second.code]).toEqual([0, 0]);

    expect(model.complaints).toEqual([]);
    expect(stage.door.requests.filter(({ status }) => status >= 400)).toEqual([]);
    const calls = stage.door.requests.filter(({ path }) => client.path.test(path));
    expect(calls.length).toBeGreaterThanOrEqual(6);
    expect(calls.filter(({ isStream }) => !isStream)).toEqual([]);
    await expectRows(stage, dialect, model.requests.length);
  });

  it("shows that the budget is exhausted, and does not call again and again", async () => {
    const [dialect] = client.targets;
    const setup = await prepare(stage, dialect, await limitedToken(stage));
    stage.models[dialect].script = scriptOf(client, setup.work);
    const { output } = await runClient(
      program,
      client.begin(FIRST_PROMPT, setup),
      stage.door,
      setup,
      await client.configure(setup),
    );
    expect(output).toMatch(client.refusals.budget);
    const refused = stage.door.requests.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThanOrEqual(client.refusals.calls);
    expect(stage.models[dialect].requests.length).toBeLessThanOrEqual(1);
  });

  it("shows that its token is refused, and does not call again and again", async () => {
    const [dialect] = client.targets;
    const setup = await prepare(stage, dialect, "sbx_that_nobody_made");
    const { output } = await runClient(
      program,
      client.begin(FIRST_PROMPT, setup),
      stage.door,
      setup,
      await client.configure(setup),
    );
    expect(output).toMatch(client.refusals.token);
    expect(stage.door.requests.length).toBeLessThanOrEqual(client.refusals.calls);
    expect(stage.models[dialect].requests).toEqual([]);
  });
}

async function prepare(stage: Stage, dialect: ModelDialect, token: string): Promise<Setup> {
  const folder = await stage.folder();
  const [home, work] = [join(folder, "home"), join(folder, "work")];
  await mkdir(home);
  await mkdir(work);
  await writeFile(join(work, "notes.txt"), "colour: red\n");
  await writeFile(join(work, "other.txt"), "shape: round\n");
  const url = `http://127.0.0.1:${stage.door.port}`;
  return { url, token, model: TARGETS[dialect].model, home, work };
}

/** A token whose month is spent with its first call. */
async function limitedToken(stage: Stage): Promise<string> {
  const { body } = await stage.server.api("POST", "/accounts/default/tokens", {
    name: "almost spent",
    permissions: ["gateway.run"],
    budgets: [{ limit: 0.000_01, window: "month" }],
  });
  return (body as { result: { token: string } }).result.token;
}

/** Reads two files at once, edits one, runs a command and repeats what it printed; after the second prompt, writes a file. */
function scriptOf({ tools }: CodingClient, work: string): (conversation: Conversation) => ModelAnswer {
  const notes = join(work, "notes.txt");
  const { name: shell } = tools.run("");
  const step = (...calls: ToolUse[]): ModelAnswer => ({ text: "I go on with it.", calls });
  return ({ tools: offered, results, text }) => {
    // Clients also ask for titles and summaries.
    if (!offered.includes(shell)) return { text: TITLE };
    switch (results.length) {
      case 0:
        return step(tools.read(notes), tools.read(join(work, "other.txt")));
      case 2:
        expectResult(results[0], "colour: red");
        expectResult(results[1], "shape: round");
        return step(tools.edit(notes, "colour: red", "colour: green"));
      case 3:
        return step(tools.run(PRINTING));
      case 4:
        if (text.includes(SECOND_PROMPT)) return step(tools.write(join(work, "made.txt"), "made by a model"));
        return {
          text: `The command printed ${/COLOUR: \w+/.exec(results[3] ?? "")?.[0] ?? `only: ${results[3]}`}.`,
        };
      default:
        return { text: "The file is made." };
    }
  };
}

/** Throws as a provider would refuse: the conversation would be wrong. */
function expectResult(result: string | undefined, text: string): void {
  if (result?.includes(text) !== true) throw new Error(`${String(result)} instead of ${text}`);
}

/** One row for each call of the model, with its tokens and cost. */
async function expectRows(stage: Stage, dialect: ModelDialect, calls: number): Promise<void> {
  const { provider, model, price } = TARGETS[dialect];
  const rows = (await readLogs(stage.server)).slice(0, calls);
  const cost = (INPUT_TOKENS * price.in + OUTPUT_TOKENS * price.out) / 1e6;
  expect(rows).toHaveLength(calls);
  for (const row of rows) {
    expect(row).toMatchObject({
      provider,
      model: model.slice(model.indexOf("/") + 1),
      status_code: 200,
      success: true,
      tokens_in: INPUT_TOKENS,
      tokens_out: OUTPUT_TOKENS,
      usage: "reported",
    });
    expect(row["cost"]).toBeCloseTo(cost, 10);
  }
}
