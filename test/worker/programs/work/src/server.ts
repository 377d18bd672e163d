/** Alarms and workflows whose only effect is a request to the oracle of the test. */
import { DurableObject, WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";

const report = async (id: string) => {
  const response = await fetch(`${process.env["ORACLE_URL"]}effect/${id}`);
  await response.text();
};

export class Bell extends DurableObject<Env> {
  async ring(id: string, delayMs: number) {
    await this.ctx.storage.put("id", id);
    await this.ctx.storage.setAlarm(Date.now() + delayMs);
  }

  async alarm() {
    await report((await this.ctx.storage.get("id")) as string);
  }
}

export class Flow extends WorkflowEntrypoint<Env, { napMs: number }> {
  async run(event: WorkflowEvent<{ napMs: number }>, step: WorkflowStep) {
    for (const name of ["one", "two"]) await step.do(name, async () => report(`${event.instanceId}/${name}`));
    await step.sleep("nap", event.payload.napMs);
    await step.do("three", async () => report(event.instanceId));
  }
}

export default {
  async fetch(request: Request, env: Env) {
    const [, kind, id = ""] = new URL(request.url).pathname.split("/");
    const { delayMs } = await request.json();
    if (kind === "bell") await env.BELL.getByName(id).ring(id, delayMs);
    else await env.FLOW.create({ id, params: { napMs: delayMs } });
    return Response.json({ id });
  },
};
