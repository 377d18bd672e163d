/** Tools of the responses dialect. */
import {
  optionalRecord,
  optionalText,
  requireList,
  requireName,
  requireRecord,
  recordOf,
  textOf,
  type Json,
} from "../json.ts";
import type { Losses } from "../losses.ts";
import type { Tool, WebSearch } from "../neutral/request.ts";
import { decodeResponsesSearch } from "../web-search.ts";

/** A hosted tool runs at the provider. The target has no such tool, but for the search of the web (`decodeSearchTool`), so it is left out and listed. */
export function decodeTools(tools: readonly unknown[], field: string, losses: Losses): Tool[] {
  return tools.flatMap((value, i) => {
    const path = `${field}[${i}]`;
    const tool = requireRecord(value, path);
    if (tool["type"] !== "namespace") return decodeTool(tool, path, null, losses);
    const namespace = requireName(tool["name"], `${path}.name`);
    return requireList(tool["tools"], `${path}.tools`).flatMap((inner, j) =>
      decodeTool(requireRecord(inner, `${path}.tools[${j}]`), `${path}.tools[${j}]`, namespace, losses),
    );
  });
}

function decodeTool(tool: Json, path: string, namespace: string | null, losses: Losses): Tool[] {
  if (tool["type"] === "function") {
    return [
      {
        kind: "function",
        name: requireName(tool["name"], `${path}.name`),
        description: optionalText(tool["description"], `${path}.description`),
        schema: optionalRecord(tool["parameters"], `${path}.parameters`),
        // `false` is what the other dialects do when nothing is said.
        strict: tool["strict"] === true ? true : null,
        namespace,
        cache: null,
      },
    ];
  }
  if (tool["type"] === "custom") {
    return [
      {
        kind: "custom",
        name: requireName(tool["name"], `${path}.name`),
        description: optionalText(tool["description"], `${path}.description`),
        format: optionalRecord(tool["format"], `${path}.format`),
        namespace,
      },
    ];
  }
  if (decodeResponsesSearch(tool, path) === null) losses.note(`tools.${textOf(tool["type"])}`);
  return [];
}

export function decodeSearchTool(tools: readonly unknown[], field: string): WebSearch | null {
  const found = tools.map((tool, i) => decodeResponsesSearch(recordOf(tool), `${field}[${i}]`));
  return found.find((search) => search !== null) ?? null;
}
