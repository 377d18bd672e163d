/** Tags through two major versions of the public `cloudflare` SDK, with no change except `baseURL`. */
import Cloudflare7 from "cloudflare";
import Cloudflare6 from "cloudflare-6";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let apiToken: string;
beforeAll(async () => {
  server = await startTestServer();
  apiToken = await server.token(["tags.read", "tags.edit"]);
});
afterAll(() => server.stop());

interface SummaryEntry {
  readonly key: string;
  readonly values: string[];
}

const account_id = "default";
const zone_id = "023e105f4ecef8ad9ca31a8372d0c353";

describe.each([
  ["7", (options: object) => new Cloudflare7(options)],
  // Version 6 types fewer resources and filters; the requests are the same.
  ["6", (options: object) => new Cloudflare6(options) as unknown as Cloudflare7],
] as const)("version %s of the SDK", (version, create) => {
  let client: Cloudflare7;
  const key = `sdk${version}`;
  beforeAll(() => {
    client = create({ apiToken, baseURL: `${server.url}/client/v4` });
  });

  it("tags of an account resource are set, read and deleted, with etags", async () => {
    const tags = client.resourceTagging.accountTags;
    const resource = { account_id, resource_type: "worker", resource_id: `w${version}` } as const;
    const set = await tags.update({ ...resource, tags: { [key]: "one", ключ: "å" } });
    expect(set).toMatchObject({ type: "worker", id: `w${version}`, tags: { [key]: "one", ключ: "å" } });
    expect(await tags.get(resource)).toEqual(set);
    await tags.update({ ...resource, tags: { [key]: "two" }, "If-Match": set.etag });
    await expect(tags.update({ ...resource, tags: {}, "If-Match": set.etag })).rejects.toMatchObject({
      status: 412,
      errors: [{ code: 1016, message: "etag does not match" }],
    });
    await tags.delete({ account_id }, { body: { resource_type: "worker", resource_id: `w${version}` } });
    await expect(tags.get(resource)).rejects.toMatchObject({
      status: 500,
      errors: [{ code: 1004, message: `resource not found: type=worker id=w${version}` }],
    });
  });

  it("tags of a zone resource are set, read and deleted, also by query", async () => {
    const tags = client.resourceTagging.zoneTags;
    const resource = { zone_id, resource_type: "dns_record", resource_id: `r${version}` } as const;
    const set = await tags.update({ ...resource, tags: { zoned: "1" } });
    expect(set).toMatchObject({ zone_id, type: "dns_record", tags: { zoned: "1" } });
    expect(await tags.get(resource)).toEqual(set);
    await tags.delete({ zone_id }, { query: { resource_type: "dns_record", resource_id: `r${version}` } });
    await expect(tags.get(resource)).rejects.toMatchObject({ status: 500 });
    await expect(tags.delete({ zone_id })).rejects.toMatchObject({ status: 400, errors: [{ code: 1015 }] });
  });

  it("resources, keys and values are iterated over several pages", async () => {
    const items = Array.from({ length: 230 }, (_, i) => ({
      resource_type: "queue",
      resource_id: `q${version}-${String(i).padStart(3, "0")}`,
      tags: {
        [`walk${version}`]: String(i).padStart(3, "0"),
        [`walk${version}.${String(i).padStart(3, "0")}`]: "",
      },
    }));
    await server.api("POST", "/accounts/default/tags/bulk", { items });
    const ids: string[] = [];
    for await (const resource of client.resourceTagging.list({
      account_id,
      tag: [`walk${version}`, "!none"],
      type: ["queue"],
    })) {
      ids.push(resource.id);
    }
    expect(ids).toEqual(items.map((item) => item.resource_id));
    const values: string[] = [];
    for await (const value of client.resourceTagging.values.list(`walk${version}`, {
      account_id,
      type: "queue",
    }))
      values.push(value);
    expect(values).toEqual(items.map((_, i) => String(i).padStart(3, "0")));
    const keys: string[] = [];
    for await (const name of client.resourceTagging.keys.list({ account_id })) keys.push(name);
    expect(keys.filter((name) => name.startsWith(`walk${version}`))).toHaveLength(231);
  });

  it("filter values are escaped correctly, and the summary is read", async () => {
    const odd = "a=b & c+d/é,ü";
    await client.resourceTagging.accountTags.update({
      account_id,
      resource_type: "image",
      resource_id: `i${version}`,
      tags: { [`odd${version}`]: odd },
    });
    const page = await client.resourceTagging.list({
      account_id,
      tag: [`odd${version}=${odd.replace(",", String.raw`\,`)}`],
    });
    expect(page.result.map((resource) => resource.id)).toEqual([`i${version}`]);
    // Version 6 has the resource without this method; the path is requested directly.
    const summary =
      version === "6"
        ? (await client.get<{ result: SummaryEntry[] }>(`/accounts/${account_id}/tags/summary`)).result
        : await client.resourceTagging.summary.get({ account_id });
    expect(summary.find((entry) => entry.key === `odd${version}`)).toEqual({
      key: `odd${version}`,
      values: [odd],
    });
  });

  it("errors of the contract become errors of the SDK", async () => {
    await expect(client.resourceTagging.list({ account_id, tag: ["!a=b"] })).rejects.toMatchObject({
      status: 400,
      errors: [{ code: 1007 }],
    });
    await expect(
      (async () => client.resourceTagging.values.list("", { account_id }))(),
    ).rejects.toMatchObject({ status: 400, errors: [{ code: 1009, message: "tag_key is required" }] });
    const stranger = create({ apiToken: "nope", baseURL: server.url });
    await expect(stranger.resourceTagging.list({ account_id })).rejects.toMatchObject({
      status: 401,
      errors: [{ code: 10000 }],
    });
  });
});
