/** Runs operations that a test has chosen at random: POST { object, name, operations }. */
import { apply } from "./peer";

export { Peer } from "./peer";
export { Storage } from "./storage";

export default {
  async fetch(request: Request, env) {
    if (request.method !== "POST") return new Response("ready");
    const { object, name, how, operations } = await request.json();
    const stub = env[object].getByName(name);
    if (object === "Storage") {
      if (how !== "reset") return Response.json(await stub.run(operations, how === "burst"));
      await stub.reset().catch(() => undefined);
      return Response.json([]);
    }
    const results: unknown[] = [];
    for (const operation of operations) results.push(await apply(stub, operation));
    return Response.json(results);
  },
};
