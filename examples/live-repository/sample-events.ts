/** Sample deliveries, signed like GitHub's, for a page without a real repository. */
import { createHmac, randomUUID } from "node:crypto";

const REPOSITORIES = ["acme/widgets", "acme/rockets", "octo/hello-world"];
const PEOPLE = ["ada", "grace", "linus"];

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T;

export interface GitHubEvent {
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

export function sampleEvent(): GitHubEvent {
  const repository = { full_name: pick(REPOSITORIES), html_url: "https://github.example/sample" };
  const sender = { login: pick(PEOPLE) };
  const number = Math.ceil(Math.random() * 900);
  return pick<GitHubEvent>([
    {
      type: "push",
      payload: { ref: "refs/heads/main", commits: [{ message: "Tidy up" }], repository, sender },
    },
    {
      type: "issues",
      payload: { action: "opened", issue: { number, title: "It does not start" }, repository, sender },
    },
    {
      type: "pull_request",
      payload: {
        action: "opened",
        number,
        pull_request: { number, title: "Make it start" },
        repository,
        sender,
      },
    },
  ]);
}

/** Posts one delivery and resolves to the status of the response. */
export async function deliver(address: string, secret: string, event: GitHubEvent): Promise<number> {
  const body = JSON.stringify(event.payload);
  const response = await fetch(address, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-event": event.type,
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    },
    body,
  });
  await response.text();
  return response.status;
}
