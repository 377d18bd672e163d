/** A plain object with `Lifecycle` of the published package and its capabilities: the form that the package recommends. */
import { DurableObject } from "cloudflare:workers";
import { routeAgentRequest } from "agents";
import { Lifecycle } from "agents/lifecycle";
import { Queue } from "agents/queue";
import { Scheduler } from "agents/schedules";
import { Sessions } from "agents/sessions";
import { State } from "agents/state";
import { Streams } from "agents/streams";
import { Tasks, type TaskStep } from "agents/tasks";

export class Desk extends DurableObject {
  readonly tasks = new Tasks({
    definitions: {
      "report@v1": async (input: { topic: string }, step: TaskStep) => {
        const found = await step.do("research", async () => `about ${input.topic}`);
        await step.sleep("rest", "1 second");
        return step.do("publish", async () => `${found}, published`);
      },
    },
  });
  readonly scheduler = new Scheduler({
    callbacks: { remind: (payload: { text: string }) => this.note(`reminded of ${payload.text}`) },
  });
  readonly queue = new Queue({
    callbacks: { work: (payload: { n: number }) => this.note(`worked on ${payload.n}`) },
  });
  readonly streams = new Streams();
  readonly sessions = new Sessions();
  readonly shared = new State<{ count: number }>({ initialState: { count: 0 } });
  readonly lifecycle = Lifecycle.install(this)
    .use(this.tasks)
    .use(this.scheduler)
    .use(this.queue)
    .use(this.streams)
    .use(this.sessions)
    .use(this.shared);
  readonly session = this.sessions.session();

  onStart() {
    this.note("started");
  }

  note(text: string) {
    this.ctx.storage.kv.put("log", [...((this.ctx.storage.kv.get("log") as string[]) ?? []), text]);
  }

  async onRequest(request: Request) {
    const url = new URL(request.url);
    const id = url.searchParams.get("id") ?? "";
    switch (url.pathname.split("/").at(-1)) {
      case "task":
        return Response.json(await this.tasks.run("report@v1", { topic: "tides" }));
      case "task-of":
        return Response.json(await this.tasks.get(id));
      case "remind":
        await this.scheduler.set(1, "remind", { text: "tea" });
        return Response.json(await this.scheduler.list());
      case "push":
        for (const n of [1, 2, 3]) await this.queue.push("work", { n });
        return Response.json(true);
      case "write": {
        const stream = await this.streams.open("reply");
        for (const chunk of ["a", "b", "c"]) stream.append(chunk);
        stream.close();
        return Response.json(true);
      }
      case "read": {
        const chunks: unknown[] = [];
        for await (const chunk of this.streams.read("reply")) chunks.push(chunk);
        return Response.json(chunks);
      }
      case "say":
        await this.session.appendMessage({ id, role: "user", parts: [{ type: "text", text: id }] });
        return Response.json((await this.session.getHistory()).map((message) => message.id));
      case "count":
        this.shared.set({ count: (this.shared.get()?.count ?? 0) + 1 });
        return Response.json(this.shared.get());
      default:
        return Response.json({ name: this.lifecycle.name, log: this.ctx.storage.kv.get("log") });
    }
  }
}

export default {
  async fetch(request: Request, env) {
    return (await routeAgentRequest(request, env)) ?? new Response("not found", { status: 404 });
  },
};
