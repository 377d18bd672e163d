/** Management routes of a gateway's circuits: which targets are skipped, since when, and how to close them by hand. */
import { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import type { SharedSettings } from "../../database/shared-settings.ts";
import type { Gateways } from "../settings/gateways.ts";
import { GATEWAYS_PATH, requireGateway } from "../settings/gateway-routes.ts";
import type { Circuit, Circuits } from "./circuits.ts";

const PATH = `${GATEWAYS_PATH}/{gateway_id}/circuits`;

const result = z.object({
  provider: z.string(),
  model: z.string(),
  /** Id of the stored key; null for the callers' own keys. */
  key_id: z.string().nullable(),
  state: z.enum(["closed", "open", "half_open"]),
  failures_in_a_row: z.int(),
  failures: z.int(),
  calls: z.int(),
  opened_at: z.iso.datetime().nullable(),
  probe_at: z.iso.datetime().nullable(),
});

/** Each node has circuits of its own, in memory only; closing them by hand closes them on all nodes. */
export function circuitRoutes(gateways: Gateways, circuits: Circuits, settings: SharedSettings): Route[] {
  settings.register("circuits", {
    async reload(keys) {
      for (const key of keys ?? []) {
        const [accountId = "", gatewayId = ""] = key.split("/");
        circuits.forget(accountId, gatewayId);
      }
    },
  });
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      access: "gateway.read",
      summary: "List the targets with recent failures and the state of their circuits.",
      result: z.array(result),
      handler: ({ params }) => {
        const { accountId, id } = requireGateway(gateways, params);
        return { result: circuits.list(accountId, id).map(show) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: PATH,
      access: "gateway.edit",
      summary: "Close all circuits of a gateway: the next call tries every target again.",
      result: z.array(result),
      handler: async ({ params }) => {
        const { accountId, id } = requireGateway(gateways, params);
        const closed = circuits.list(accountId, id).map(show);
        await settings.write("circuits", async (_, changed) => changed(`${accountId}/${id}`));
        return { result: closed };
      },
    }),
  ];
}

function show(circuit: Circuit): z.input<typeof result> {
  const { target } = circuit;
  return {
    provider: target.provider,
    model: target.model,
    key_id: target.keyId,
    state: circuit.state,
    failures_in_a_row: circuit.failuresInARow,
    failures: circuit.failures,
    calls: circuit.calls,
    opened_at: toText(circuit.openedAt),
    probe_at: toText(circuit.probeAt),
  };
}

function toText(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
