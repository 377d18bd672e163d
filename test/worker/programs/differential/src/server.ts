/** One program for two servers: its answers must be the same on both. */
import { routeAgentRequest } from "agents";
import { outcome } from "./show";
import { orderCases } from "./order";
import { remoteCases } from "./remote";

export { Desk } from "./desk";
export { Broken, Order, Plain } from "./order";
export { Remote } from "./remote";
export { Socket } from "./socket";
export { Store } from "./store";

export default {
  async fetch(request: Request, env) {
    const url = new URL(request.url);
    const [, area, first = "", second = ""] = url.pathname.split("/");
    switch (area) {
      case "ready":
        return new Response("ready");
      case "remote":
        return Response.json(await remoteCases(env));
      case "order":
        return Response.json(await orderCases(env));
      // Calls a method of an object: /call/{class}.{name}/{method}?args=[…]
      case "call": {
        const [space, name] = first.split(".");
        const args = JSON.parse(url.searchParams.get("args") ?? "[]");
        return Response.json(await outcome(() => env[space].getByName(name)[second](...args)));
      }
      case "socket":
        return env.Socket.getByName(first).fetch(
          new Request(`https://example.com/${second}${url.search}`, request),
        );
      case "agents":
        return (await routeAgentRequest(request, env)) ?? new Response("no agent", { status: 404 });
      default:
        return new Response("not found", { status: 404 });
    }
  },
};
