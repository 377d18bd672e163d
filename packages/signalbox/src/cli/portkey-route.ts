/** The elements of a dynamic route for the targets of a configuration of Portkey. A target that fails leads to what follows its group. */
import type { RouteElement } from "@signalbox/client";
import type { Fields } from "../core/fields.ts";
import { sharesOf } from "./imported-routes.ts";
import type { Model } from "./portkey-target.ts";
import type { Node } from "./portkey-tree.ts";

const END = "end";

type Outputs = NonNullable<RouteElement["outputs"]>;

export function toElements(tree: Node): RouteElement[] {
  const linked: RouteElement[] = [];
  let count = 0;
  const add = (prefix: string, type: RouteElement["type"], properties: Fields | null, outputs: Outputs) => {
    const id = `${prefix}${++count}`;
    linked.push({ id, type, ...(properties === null ? {} : { properties }), outputs });
    return id;
  };
  /** The id of the element at which the node begins; `next` follows when all of it fails, null for nothing. */
  const link = (node: Node, next: string | null): string => {
    switch (node.type) {
      case "model": {
        const fallback = next === null ? {} : { fallback: { elementId: next } };
        return add("model-", "model", propertiesOf(node.model), {
          success: { elementId: END },
          ...fallback,
        });
      }
      case "fallback":
        return node.nodes.reduceRight((following: string | null, one) => link(one, following), next) ?? END;
      case "balance": {
        const shares = node.shares.map(({ weight, node: one }) => ({ weight, elementId: link(one, next) }));
        const [only, ...others] = shares;
        if (only !== undefined && others.length === 0) return only.elementId;
        return add("share-", "percentage", null, sharesOf(shares));
      }
      case "conditional": {
        // Several conditions may lead to one target.
        const entries = new Map<Node, string>();
        const entryOf = (one: Node) => {
          const entry = entries.get(one) ?? link(one, next);
          entries.set(one, entry);
          return entry;
        };
        return node.cases.reduceRight(
          (otherwise, { condition, node: one }) =>
            add(
              "if-",
              "conditional",
              { conditions: condition },
              { true: { elementId: entryOf(one) }, false: { elementId: otherwise } },
            ),
          node.otherwise === null ? END : entryOf(node.otherwise),
        );
      }
    }
  };
  const first = link(tree, null);
  return [
    { id: "start", type: "start", outputs: { next: { elementId: first } } },
    // The last one was linked first.
    ...linked.toReversed(),
    { id: END, type: "end", outputs: {} },
  ];
}

function propertiesOf({ provider, model, timeoutMs, retries }: Model): Fields {
  return {
    provider,
    model,
    ...(timeoutMs === null ? {} : { timeout: timeoutMs }),
    ...(retries === null ? {} : { retries }),
  };
}
