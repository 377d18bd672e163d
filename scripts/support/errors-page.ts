/** `docs/reference/errors.md`, from the error table. */
import { join } from "node:path";
import { ERROR_TABLE, type ErrorArea, type ErrorEntry } from "../../packages/protocol/src/index.ts";

export const ERRORS_PAGE_PATH = join(import.meta.dirname, "../../docs/reference/errors.md");

const INTRODUCTION = `# Errors

This page is generated from the error table in \`packages/protocol/src/error-table.ts\` by \`npm run docs\`.

A failure of the management interface, the webhook intake or an agent's HTTP door looks like this; \`code\` is the number below and
every response carries \`x-request-id\`:

\`\`\`json
{ "success": false, "errors": [{ "code": 10000, "message": "Authentication error" }], "messages": [], "result": null }
\`\`\`

A failure of the gateway itself (not of the provider behind it) has the header \`gw-aig-error-origin: gateway\` and this body:

\`\`\`json
{
  "success": false, "result": [], "messages": [],
  "error": [{ "code": 2009, "message": "Unauthorized" }],
  "name": "AiGatewayError", "httpCode": 401, "internalCode": 2009, "message": "Unauthorized"
}
\`\`\`

*Retry* says whether the same request may succeed later unchanged. *Close code* is what a WebSocket is closed with over the error;
1008 and 4000–4999 are final, the others invite a reconnect. A message may be more precise than the one listed.
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
