/** `docs/reference/errors.md`, from the error table. */
import { join } from "node:path";
import { ERROR_TABLE, type ErrorArea, type ErrorEntry } from "../../packages/protocol/src/index.ts";

export const ERRORS_PAGE_PATH = join(import.meta.dirname, "../../docs/reference/errors.md");

const INTRODUCTION = `# Errors

This page is generated from the error table in \`packages/protocol/src/error-table.ts\` by \`npm run docs\`.

The management interface, the webhook intake and the HTTP interface of agents report an error as follows. \`code\` is the number in the tables below, and
every response has the header \`x-request-id\`:

\`\`\`json
{ "success": false, "errors": [{ "code": 10000, "message": "Authentication error" }], "messages": [], "result": null }
\`\`\`

An error of the gateway itself (not of the provider) has the header \`gw-aig-error-origin: gateway\` and this body:

\`\`\`json
{
  "success": false, "result": [], "messages": [],
  "error": [{ "code": 2009, "message": "Unauthorized" }],
  "name": "AiGatewayError", "httpCode": 401, "internalCode": 2009, "message": "Unauthorized"
}
\`\`\`

*Retry* says whether the same request may succeed later. *Close code* is the code with which a WebSocket is closed because of the error;
after 1008 and 4000–4999 a client should not reconnect, after other codes it may. A message may be more specific than the one listed.
`;

const AREAS: readonly (readonly [ErrorArea, string])[] = [
  ["management", "Every interface"],
  ["gateway", "Gateway"],
  ["webhooks", "Webhooks"],
  ["agents", "Agents"],
  ["tags", "Tags"],
];

export function errorsPage(): string {
  const entries: [string, ErrorEntry][] = Object.entries(ERROR_TABLE);
  const sections = AREAS.map(([area, title]) => {
    const own = entries.filter(([, entry]) => entry.area === area).sort(([, a], [, b]) => a.code - b.code);
    if (own.length === 0) return "";
    const rows = own.map(
      ([name, entry]) =>
        `| ${entry.code} | ${entry.status} | ${entry.message} | ${entry.retryable ? "yes" : "no"} | ${entry.closeCode ?? ""} | \`${name}\` |`,
    );
    return `\n## ${title}\n\n| Code | Status | Message | Retry | Close code | Name in the code |\n| --- | --- | --- | --- | --- | --- |\n${rows.join("\n")}\n`;
  });
  return INTRODUCTION + sections.join("");
}
