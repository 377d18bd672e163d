/** A program that has a class with the name of an agent that is part of the server. */
import { Agent, callable, routeAgentRequest } from "agents";

export class WebhookAgent extends Agent<Env, { seen: number }> {
  initialState = { seen: 0 };

  @callable()
  see() {
    this.setState({ seen: this.state.seen + 1 });
    return this.state.seen;
  }

  onRequest() {
    return Response.json({ mine: true, seen: this.state.seen });
  }
}

export default {
  async fetch(request: Request, env: Env) {
    return (await routeAgentRequest(request, env)) ?? new Response("none", { status: 404 });
  },
};
