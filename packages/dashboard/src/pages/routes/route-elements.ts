/** Edits of a route's graph in the JSON of the interface. Members that the forms do not know are kept. */
import type { RouteElement } from "@signalbox/client";

export type Elements = readonly RouteElement[];

export const ELEMENT_TYPES = ["model", "conditional", "percentage", "rate", "end"] as const;
export type ElementType = (typeof ELEMENT_TYPES)[number];

const OUTPUTS: Readonly<Record<string, readonly string[]>> = {
  start: ["next"],
  conditional: ["true", "false"],
  rate: ["success", "fallback"],
  rate_limit: ["success", "fallback"],
  model: ["success", "fallback"],
  end: [],
};

const PROPERTIES: Readonly<Record<ElementType, Record<string, unknown>>> = {
  model: { provider: "echo", model: "echo" },
  conditional: { conditions: { "metadata.plan": { $eq: "pro" } } },
  percentage: {},
  rate: { limitType: "count", key: "", limit: 100, window: 3600 },
  end: {},
};

/** Names of the outputs that an element can have; those of a percentage are free. */
export function outputsOf({ type, outputs = {} }: RouteElement): readonly string[] {
  return OUTPUTS[type] ?? Object.keys(outputs);
}

/** A route that always takes one model. */
export function firstElements(provider: string, model: string): Elements {
  return [
    { id: "start", type: "start", outputs: { next: { elementId: "model" } } },
    {
      id: "model",
      type: "model",
      properties: { provider, model },
      outputs: { success: { elementId: "end" } },
    },
    { id: "end", type: "end" },
  ];
}

/** Adds an element with a free id; the outputs that every call can take lead to the first `end`. */
export function addElement(elements: Elements, type: ElementType): { elements: Elements; id: string } {
  const id = freeId(elements, type);
  const end = elements.find((one) => one.type === "end")?.id;
  const names =
    type === "percentage" ? ["50%", "else"] : type === "conditional" ? ["true", "false"] : ["success"];
  const outputs = Object.fromEntries(names.map((name) => [name, { elementId: end ?? "" }]));
  const added: RouteElement =
    type === "end"
      ? { id, type }
      : { id, type, properties: PROPERTIES[type], ...(end === undefined ? {} : { outputs }) };
  return { elements: [...elements, added], id };
}

/** Removes an element and all outputs that lead to it. */
export function removeElement(elements: Elements, id: string): Elements {
  return elements
    .filter((one) => one.id !== id)
    .map((one) =>
      one.outputs === undefined
        ? one
        : {
            ...one,
            outputs: Object.fromEntries(
              Object.entries(one.outputs).filter(([, { elementId }]) => elementId !== id),
            ),
          },
    );
}

/** Gives an element another id, also in outputs. The id must be free. */
export function renameElement(elements: Elements, from: string, to: string): Elements {
  return elements.map((one) => ({
    ...one,
    id: one.id === from ? to : one.id,
    ...(one.outputs === undefined
      ? {}
      : {
          outputs: Object.fromEntries(
            Object.entries(one.outputs).map(([name, output]) => [
              name,
              output.elementId === from ? { ...output, elementId: to } : output,
            ]),
          ),
        }),
  }));
}

export function replaceElement(elements: Elements, changed: RouteElement): Elements {
  return elements.map((one) => (one.id === changed.id ? changed : one));
}

/** `target` null removes the output. */
export function withOutput(element: RouteElement, name: string, target: string | null): RouteElement {
  const { [name]: before, ...others } = element.outputs ?? {};
  return {
    ...element,
    outputs: target === null ? others : { ...others, [name]: { ...before, elementId: target } },
  };
}

/** Undefined removes the property. */
export function withProperty(element: RouteElement, name: string, value: unknown): RouteElement {
  const { [name]: before, ...others } = element.properties ?? {};
  if (before === value) return element;
  return { ...element, properties: value === undefined ? others : { ...others, [name]: value } };
}

/** Reads the JSON view. Throws an error with a message for people; what a graph may contain is checked by the service. */
export function parseElements(text: string): Elements {
  const value = parseJson(text);
  if (!Array.isArray(value)) throw new Error("The graph must be a list of elements.");
  const ids = new Set<string>();
  for (const [i, one] of value.entries()) {
    if (!isElement(one))
      throw new Error(`Element ${i + 1} must have an id and a type, and outputs with an elementId.`);
    if (ids.has(one.id)) throw new Error(`Two elements have the id "${one.id}".`);
    ids.add(one.id);
  }
  return value as Elements;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not valid JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function isElement(value: unknown): value is RouteElement {
  if (!isObject(value) || typeof value["id"] !== "string" || typeof value["type"] !== "string") return false;
  const { outputs = {}, properties = {} } = value;
  return (
    isObject(properties) &&
    isObject(outputs) &&
    Object.values(outputs).every((output) => isObject(output) && typeof output["elementId"] === "string")
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function freeId(elements: Elements, type: string): string {
  const ids = new Set(elements.map(({ id }) => id));
  for (let n = 1; ; n++) {
    const id = n === 1 ? type : `${type}-${n}`;
    if (!ids.has(id)) return id;
  }
}
