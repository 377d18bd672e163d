/** GitLab: one instance for each project; group and system events go to the group. */
import { gitlabScheme } from "../schemes/index.ts";
import { firstLine, firstTextAt, foldedRules, rules, textAt, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const gitlab: SourceKind = {
  name: "gitlab",
  scheme: gitlabScheme,
  entity: foldedRules(
    "body:project.path_with_namespace",
    "body:project_path_with_namespace",
    "body:path_with_namespace",
    "body:group.full_path",
    "body:full_path",
    "body:group_path",
  ),
  eventType: rules("body:object_kind", "body:event_name", "header:x-gitlab-event"),
  action: rules("body:object_attributes.action", "body:action"),
  deliveryId: rules(
    "header:webhook-id",
    "header:idempotency-key",
    "header:x-gitlab-webhook-uuid",
    "header:x-gitlab-event-uuid",
  ),
  describe({ payload }, type, action) {
    const actor = firstTextAt(payload, "user.username", "user_username", "user.name", "user_name");
    const number = textAt(payload, "object_attributes.iid");
    const name = firstTextAt(payload, "object_attributes.title", "merge_request.title", "issue.title");
    const state = firstTextAt(payload, "object_attributes.status", "object_attributes.state", "build_status");
    const branch = textAt(payload, "ref")?.replace(/^refs\/(heads|tags)\//, "") ?? null;
    const commits = textAt(payload, "total_commits_count");
    const head =
      type === "push"
        ? words(actor, `pushed ${commits ?? "some"} commits`, branch && `to ${branch}`)
        : words(type.replaceAll("_", " "), number && `#${number}`, action ?? state);
    return {
      title: name === null ? head : `${head}: ${name}`,
      description: firstLine(
        firstTextAt(
          payload,
          "object_attributes.note",
          "object_attributes.description",
          "commits.0.message",
          "commit.message",
        ),
      ),
      url: firstTextAt(payload, "object_attributes.url", "commits.0.url", "project.web_url"),
      actor,
    };
  },
  sample: ({ entity, deliveryId }) =>
    jsonSample(
      {
        object_kind: "push",
        ref: "refs/heads/main",
        user_username: "sample",
        total_commits_count: 1,
        project: { path_with_namespace: entity, web_url: `https://gitlab.com/${entity}` },
        commits: [{ id: "1111111", message: "A sample commit" }],
      },
      { "x-gitlab-event": "Push Hook", "x-gitlab-event-uuid": deliveryId, "idempotency-key": deliveryId },
    ),
};
