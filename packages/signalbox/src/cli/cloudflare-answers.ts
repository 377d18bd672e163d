/**
 * Lists of Cloudflare's interface of AI Gateways: read from the interface, or from a file with its answers.
 *
 * Invariants:
 * 1. The token is sent to the given address only: redirects are errors, and the address uses https or is this machine.
 * 2. A list that cannot be read is in `failures`, except that of gateways, without which nothing can be done.
 */
import { UsageError } from "./command.ts";
import { checkedUrl, readBounded } from "./read-source.ts";

export type Fields = Readonly<Record<string, unknown>>;

export interface CloudflareAnswers {
  /** By the path below `/accounts/{id}/ai-gateway`. */
  readonly lists: Readonly<Record<string, readonly Fields[]>>;
  /** Why a list could not be read, by its path. */
  readonly failures: Readonly<Record<string, string>>;
}

export interface CloudflareAddress {
  /** With `/client/v4`. */
  readonly url: string;
  readonly accountId: string;
  readonly token: string;
}

/** What a gateway has. */
export const GATEWAY_LISTS = ["routes", "provider_configs", "datasets", "evaluations"] as const;
export const GATEWAYS = "/gateways";
export const CUSTOM_PROVIDERS = "/custom-providers";
const PER_PAGE = 50;
const MAX_PAGES = 200;
const TIMEOUT_MS = 30_000;

type ReadList = (path: string) => Promise<readonly Fields[]>;

export async function readFromApi({ url, accountId, token }: CloudflareAddress): Promise<CloudflareAnswers> {
  const base = `${url.replace(/\/+$/, "")}/accounts/${encodeURIComponent(accountId)}/ai-gateway`;
  return readLists((path) => readPages(base + path, token));
}

/** `text`: an object with an answer or a list for each path, or one answer or list of gateways. */
export async function readFromText(text: string): Promise<CloudflareAnswers> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UsageError("the file is not JSON: expected answers of Cloudflare's interface");
  }
  const isOne = Array.isArray(value) || "result" in fieldsOf(value);
  const answers = isOne ? { [GATEWAYS]: value } : fieldsOf(value);
  return readLists(async (path) => {
    if (!Object.hasOwn(answers, path)) throw new UsageError(`the file has no answer of ${path}`);
    return listOf(answers[path], path);
  });
}

export function listPath(gateway: string, list: (typeof GATEWAY_LISTS)[number]): string {
  return `${GATEWAYS}/${encodeURIComponent(gateway)}/${list}`;
}

async function readLists(read: ReadList): Promise<CloudflareAnswers> {
  const gateways = await read(GATEWAYS);
  const lists: Record<string, readonly Fields[]> = { [GATEWAYS]: gateways };
  const failures: Record<string, string> = {};
  const ids = gateways.map(({ id }) => id).filter((id) => typeof id === "string");
  const paths = ids.flatMap((id) => GATEWAY_LISTS.map((list) => listPath(id, list)));
  for (const path of [CUSTOM_PROVIDERS, ...paths]) {
    try {
      lists[path] = await read(path);
    } catch (error) {
      failures[path] = error instanceof Error ? error.message : String(error);
    }
  }
  return { lists, failures };
}

/** A page without a new item ends the list: not every list has pages, and such a list is answered again. */
async function readPages(url: string, token: string): Promise<readonly Fields[]> {
  const items = new Map<unknown, Fields>();
  for (let page = 1; page <= MAX_PAGES; page++) {
    const answer = await readAnswer(`${url}?page=${page}&per_page=${PER_PAGE}`, token);
    const found = listOf(answer, url);
    const before = items.size;
    for (const item of found) items.set(item["id"] ?? item, item);
    const { total_count: total } = fieldsOf(answer["result_info"]);
    const isLast = typeof total === "number" ? items.size >= total : found.length < PER_PAGE;
    if (isLast || items.size === before) return [...items.values()];
  }
  throw new UsageError(`${url}: more than ${MAX_PAGES} pages`);
}

async function readAnswer(url: string, token: string): Promise<Fields> {
  try {
    const response = await fetch(checkedUrl(url), {
      headers: { authorization: `Bearer ${token}`, accept: "application/json" },
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const answer = parseFields(await readBounded(response));
    if (!response.ok || answer["success"] === false) {
      const { code, message } = fieldsOf(Array.isArray(answer["errors"]) ? answer["errors"][0] : undefined);
      const reason = typeof message === "string" ? `: ${message} (${String(code)})` : "";
      throw new Error(`HTTP ${response.status}${reason}`);
    }
    return answer;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
    throw new UsageError(
      `cannot read ${new URL(url).pathname}: ${error instanceof Error ? error.message : String(error)}${cause}`,
    );
  }
}

function parseFields(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    // The page of a proxy.
    return {};
  }
}

/** Routes are below `data`. */
function listOf(answer: unknown, path: string): readonly Fields[] {
  const { result, data } = fieldsOf(answer);
  const list = [answer, result, fieldsOf(data)["routes"], fieldsOf(result)["routes"]].find(Array.isArray);
  if (list === undefined) throw new UsageError(`${path}: expected an answer with a list`);
  return (list as unknown[]).map(fieldsOf);
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
