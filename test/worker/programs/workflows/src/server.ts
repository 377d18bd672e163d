/** Workflows: a plain one with every kind of step, and one that belongs to an agent and waits for its approval. */
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";
import { Agent, callable, routeAgentRequest } from "agents";
import { AgentWorkflow, type AgentWorkflowEvent, type AgentWorkflowStep } from "agents/workflows";

/** Steps leave a mark in an agent, so that a test sees how often each ran, across processes. */
async function mark(env: Env, name: string) {
  const desk = env.Desk.get(env.Desk.idFromName("marks"));
  return desk.mark(name);
}

export class StepsWorkflow extends WorkflowEntrypoint<
  Env,
  { flaky?: number; napMs?: number; hold?: boolean }
> {
  async run(event: WorkflowEvent<{ flaky?: number; napMs?: number; hold?: boolean }>, step: WorkflowStep) {
    const first = await step.do("first", async () => ({
      runs: await mark(this.env, `${event.instanceId}-first`),
    }));
    const flaky = await step.do(
      "flaky",
      { retries: { limit: 3, delay: 10, backoff: "constant" } },
      async ({ attempt }) => {
        if (attempt <= (event.payload.flaky ?? 0)) throw new Error(`attempt ${attempt}`);
        return attempt;
      },
    );
    if (event.payload.hold) {
      await step.do("hold", async () => {
        const runs = await mark(this.env, `${event.instanceId}-hold`);
        // The first run lasts until the process is killed, however late that is.
        await new Promise((resolve) => setTimeout(resolve, runs === 1 ? 60_000 : 10));
      });
    }
    await step.sleep("nap", event.payload.napMs ?? 1);
    const caught = await step
      .do("final", async () => {
        throw new NonRetryableError("never again");
      })
      .catch((error: Error) => error.message);
    const go = await step.waitForEvent<{ text: string }>("go", { type: "go", timeout: "1 minute" });
    return { first, flaky, caught, text: go.payload.text };
  }
}

export class OrderWorkflow extends AgentWorkflow<Desk, { item: string }> {
  async run(event: AgentWorkflowEvent<{ item: string }>, step: AgentWorkflowStep) {
    await this.reportProgress({ step: "check", status: "running" });
    const price = await step.do("price", async () => event.payload.item.length);
    const approval = await this.waitForApproval<{ by: string }>(step, { timeout: "1 minute" });
    await this.agent.record(`approved by ${approval?.by}`);
    await step.reportComplete({ price });
    return { price };
  }
}

export class Desk extends Agent<Env, { log: string[] }> {
  initialState = { log: [] as string[] };

  mark(name: string) {
    this.sql`CREATE TABLE IF NOT EXISTS mark (name TEXT PRIMARY KEY, runs INTEGER NOT NULL)`;
    this.sql`INSERT INTO mark VALUES (${name}, 1) ON CONFLICT (name) DO UPDATE SET runs = runs + 1`;
    return this.sql<{ runs: number }>`SELECT runs FROM mark WHERE name = ${name}`[0]?.runs;
  }

  marks() {
    this.sql`CREATE TABLE IF NOT EXISTS mark (name TEXT PRIMARY KEY, runs INTEGER NOT NULL)`;
    return Object.fromEntries(
      this.sql<{ name: string; runs: number }>`SELECT * FROM mark`.map(({ name, runs }) => [name, runs]),
    );
  }

  record(text: string) {
    this.setState({ log: [...this.state.log, text] });
  }

  @callable()
  async order(item: string) {
    return this.runWorkflow("ORDER", { item });
  }

  @callable()
  async decide(id: string, by: string | null) {
    if (by === null) await this.rejectWorkflow(id, { reason: "too dear" });
    else await this.approveWorkflow(id, { metadata: { by } });
  }

  @callable()
  info(id: string) {
    return this.getWorkflow(id)?.status;
  }

  async onWorkflowProgress(_name: string, _id: string, progress: { step: string }) {
    this.record(`progress ${progress.step}`);
  }

  async onWorkflowComplete(_name: string, _id: string, result: { price: number }) {
    this.record(`complete ${result.price}`);
  }

  async onWorkflowError(_name: string, _id: string, error: string) {
    this.record(`error ${error}`);
  }
}

export default {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url);
    const id = url.searchParams.get("id") ?? "";
    const body = request.method === "POST" ? await request.json() : undefined;
    try {
      switch (url.pathname) {
        case "/create":
          return Response.json({ id: (await env.STEPS.create({ id, params: body })).id });
        case "/batch":
          return Response.json(
            (await env.STEPS.createBatch([{ id }, { id: `${id}2` }])).map((one) => one.id),
          );
        case "/status":
          return Response.json(await (await env.STEPS.get(id)).status());
        case "/send":
          await (await env.STEPS.get(id)).sendEvent(body);
          return Response.json({});
        case "/do": {
          const instance = await env.STEPS.get(id);
          await instance[body.action](...(body.args ?? []));
          return Response.json({});
        }
        case "/follow": {
          using subscription = await (await env.STEPS.get(id)).subscribe(body);
          const found: string[] = [];
          for (;;) {
            const { done, value } = await subscription.next();
            if (done) return Response.json(found);
            found.push(`${value.type} ${value.stepName ?? ""}`.trim());
          }
        }
        case "/marks":
          return Response.json(await env.Desk.get(env.Desk.idFromName("marks")).marks());
      }
    } catch (error) {
      return Response.json({ error: error.message }, { status: 409 });
    }
    return (await routeAgentRequest(request, env)) ?? new Response(null, { status: 404 });
  },
};
