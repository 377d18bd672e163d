/** GitHub: repository, organisation and app webhooks, as JSON or as a form with a `payload` field. */
import { githubScheme } from "../schemes/index.ts";
import { fieldAt, firstLine, firstTextAt, foldedRules, rules, textAt, words } from "./rule.ts";
import { jsonSample, type EventText, type SourceKind } from "./source-kind.ts";

/** Fields that hold the subject of an event, most specific first, with their labels. */
const SUBJECTS: readonly (readonly [field: string, label: string])[] = [
  ["review", "Review"],
  ["comment", "Comment"],
  ["pull_request", "Pull request"],
  ["issue", "Issue"],
  ["discussion", "Discussion"],
  ["release", "Release"],
  ["workflow_run", "Workflow run"],
  ["workflow_job", "Workflow job"],
  ["check_run", "Check run"],
  ["check_suite", "Check suite"],
  ["deployment_status", "Deployment status"],
  ["deployment", "Deployment"],
  ["milestone", "Milestone"],
  ["label", "Label"],
  ["alert", "Alert"],
  ["package", "Package"],
  ["forkee", "Fork"],
];

export const github: SourceKind = {
  name: "github",
  scheme: githubScheme,
  takesForms: true,
  formPayloadField: "payload",
  entity: foldedRules("body:repository.full_name", "body:organization.login", "body:installation.id"),
  eventType: rules("header:x-github-event"),
  action: rules("body:action"),
  deliveryId: rules("header:x-github-delivery"),
  describe({ payload }, type, action) {
    const actor = firstTextAt(payload, "sender.login", "pusher.name");
    return {
      actor,
      ...(type === "push" ? describePush(payload, actor) : describeSubject(payload, type, action)),
    };
  },
  handshake: (_delivery, type) => (type === "ping" ? { status: 200, body: '{"status":"pong"}' } : null),
  sample: ({ entity, deliveryId, now }) =>
    jsonSample(
      {
        ref: "refs/heads/main",
        compare: `https://github.com/${entity}/compare/0000000...1111111`,
        commits: [{ id: "1111111", message: "A sample commit", timestamp: new Date(now).toISOString() }],
        head_commit: { id: "1111111", message: "A sample commit" },
        repository: { full_name: entity, html_url: `https://github.com/${entity}` },
        pusher: { name: "octocat" },
        sender: { login: "octocat" },
      },
      { "x-github-event": "push", "x-github-delivery": deliveryId, "user-agent": "GitHub-Hookshot/sample" },
    ),
};

function describePush(payload: unknown, actor: string | null): EventText {
  const commits = fieldAt(payload, "commits");
  const count = Array.isArray(commits) ? commits.length : 0;
  const branch = textAt(payload, "ref")?.replace(/^refs\/(heads|tags)\//, "") ?? null;
  return {
    title: words(actor, `pushed ${count} ${count === 1 ? "commit" : "commits"}`, branch && `to ${branch}`),
    description: firstLine(textAt(payload, "head_commit.message")),
    url: firstTextAt(payload, "compare", "head_commit.url", "repository.html_url"),
  };
}

function describeSubject(payload: unknown, type: string, action: string | null): EventText {
  const subject = SUBJECTS.find(([field]) => isObject(fieldAt(payload, field)));
  const repository = firstTextAt(payload, "repository.full_name", "organization.login");
  if (subject === undefined) {
    return {
      title: words(type.replaceAll("_", " "), action, repository && `in ${repository}`),
      url: firstTextAt(payload, "repository.html_url", "organization.url"),
    };
  }
  const [field, label] = subject;
  const at = (path: string) => textAt(payload, `${field}.${path}`);
  // The title of a comment or review is that of its issue or pull request.
  const number = at("number") ?? firstTextAt(payload, "issue.number", "pull_request.number");
  const name =
    at("title") ??
    at("name") ??
    at("tag_name") ??
    at("full_name") ??
    firstTextAt(payload, "issue.title", "pull_request.title");
  const outcome = at("conclusion") ?? at("state");
  const head = words(label, number && `#${number}`, action ?? outcome);
  return {
    title: name === null ? head : `${head}: ${name}`,
    description: firstLine(at("body") ?? at("description") ?? (action === null ? null : outcome)),
    url: at("html_url") ?? firstTextAt(payload, "repository.html_url"),
  };
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}
