import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export type Tags = Readonly<Record<string, string>>;

export interface TaggedResource {
  readonly type: string;
  readonly id: string;
  readonly name: string;
  readonly etag: string;
  readonly tags: Tags;
  readonly tags_updated_at?: string;
}

export interface ResourceName {
  readonly resource_type: string;
  readonly resource_id: string;
}

export interface ResourceQuery {
  /** `key`, `key=value`, `key=v1,v2`, `!key`, `key!=value`; all filters must match. */
  readonly tag?: readonly string[] | undefined;
  readonly type?: readonly string[] | undefined;
  readonly id?: readonly string[] | undefined;
  /** Substring of the name. */
  readonly name?: string | undefined;
  readonly case_insensitive?: boolean | undefined;
}

export interface ConditionalOptions extends RequestOptions {
  /** Sent as `If-Match`: the write fails with 412 if the resource has another etag. `*` matches every resource that has tags. */
  readonly etag?: string | undefined;
}

export interface TagChange extends Pick<TaggedResource, "type" | "id" | "name"> {
  readonly position: string;
  readonly action: "set" | "patch" | "delete" | "resource_deleted";
  readonly actor: string;
  readonly changed_at: string;
  readonly before: Tags | null;
  readonly after: Tags | null;
}

export interface BulkItem extends ResourceName {
  readonly operation?: "set" | "patch" | "delete";
  readonly tags?: Readonly<Record<string, string | null>>;
  readonly name?: string | undefined;
  readonly if_match?: string;
}

export interface BulkResult {
  readonly success: boolean;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
  readonly result: TaggedResource | null;
}

/** One change of all resources that match the query. `all` stands in place of a filter. */
export interface TagJobRequest extends ResourceQuery {
  readonly operation: "set" | "patch" | "delete";
  /** For `set` and `patch`; in a patch null removes a key. */
  readonly tags?: Readonly<Record<string, string | null>>;
  readonly all?: true | undefined;
}

export interface TagJob {
  readonly id: string;
  readonly operation: "set" | "patch" | "delete";
  readonly tags: Readonly<Record<string, string | null>>;
  readonly query: {
    readonly tag: readonly string[];
    readonly type: readonly string[];
    readonly id: readonly string[];
    readonly name: string | null;
    readonly case_insensitive: boolean;
  };
  readonly state: "running" | "done" | "cancelled" | "failed";
  readonly actor: string;
  /** Resources that matched when the job was created. */
  readonly total: number;
  /** The sum of the next three. */
  readonly processed: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly failed: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
}

/** A resource that a job could not change. */
export interface TagJobFailure {
  readonly type: string;
  readonly id: string;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
}

export class TagsApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/tags`;
  }

  /** Fails with code 1004 if the resource was never tagged, unless `tags.missing` of the service is 200. */
  async get(resource: ResourceName, options: RequestOptions = {}): Promise<TaggedResource> {
    const request = { query: { ...resource }, ...options };
    return this.#transport.result<TaggedResource>("GET", this.#path, request);
  }

  /** Replaces all tags. */
  async set(
    resource: ResourceName & { readonly tags: Tags; readonly name?: string | undefined },
    options: ConditionalOptions = {},
  ): Promise<TaggedResource> {
    return this.#write("PUT", resource, options);
  }

  /** Merges tags; null removes a key. */
  async patch(
    resource: ResourceName & { readonly tags: Readonly<Record<string, string | null>> },
    options: ConditionalOptions = {},
  ): Promise<TaggedResource> {
    return this.#write("PATCH", resource, options);
  }

  /** Succeeds if the resource has no tags. */
  async delete(resource: ResourceName, options: ConditionalOptions = {}): Promise<void> {
    await this.#write("DELETE", resource, options);
  }

  resources(query: ResourceQuery = {}, options: RequestOptions = {}): List<TaggedResource> {
    return new List(this.#transport, `${this.#path}/resources`, { ...query }, options);
  }

  /** Resolves to the exact number of matching resources. */
  async countResources(query: ResourceQuery = {}, options: RequestOptions = {}): Promise<number> {
    const request = { query: { ...query, total: "exact" }, ...options };
    const { info } = await this.#transport.request("GET", `${this.#path}/resources`, request);
    return info.total_count ?? 0;
  }

  /** Lists the keys in use with the number of resources that have each key. */
  keys(
    query: { prefix?: string | undefined } = {},
    options: RequestOptions = {},
  ): List<{ key: string; count: number }> {
    return new List(this.#transport, `${this.#path}/keys`, { ...query, counts: true }, options);
  }

  /** Lists the values of a key with the number of resources that have each value. */
  values(
    key: string,
    query: { prefix?: string | undefined; type?: string | undefined } = {},
    options: RequestOptions = {},
  ): List<{ value: string; count: number }> {
    return new List(
      this.#transport,
      this.#path + pathOf`/values/${key}`,
      { ...query, counts: true },
      options,
    );
  }

  /** Applies up to 1,000 changes independently. With `dryRun`, resolves to the results without writing. */
  async bulk(
    items: readonly BulkItem[],
    { dryRun = false, ...options }: RequestOptions & { readonly dryRun?: boolean } = {},
  ): Promise<BulkResult[]> {
    const request = { body: { items, dry_run: dryRun }, ...options };
    return this.#transport.result<BulkResult[]>("POST", `${this.#path}/bulk`, request);
  }

  /** Starts a change of all resources that match, in the background. */
  async createJob(job: TagJobRequest, options: RequestOptions = {}): Promise<TagJob> {
    return this.#transport.result<TagJob>("POST", `${this.#path}/jobs`, { body: job, ...options });
  }

  /** Resolves to the number of resources that such a job would visit. */
  async planJob(job: TagJobRequest, options: RequestOptions = {}): Promise<number> {
    const request = { body: { ...job, dry_run: true }, ...options };
    return (await this.#transport.result<{ total: number }>("POST", `${this.#path}/jobs`, request)).total;
  }

  /** Newest first. */
  jobs(options: RequestOptions = {}): List<TagJob> {
    return new List(this.#transport, `${this.#path}/jobs`, {}, options);
  }

  async job(id: string, options: RequestOptions = {}): Promise<TagJob> {
    return this.#transport.result<TagJob>("GET", this.#path + pathOf`/jobs/${id}`, options);
  }

  jobFailures(id: string, options: RequestOptions = {}): List<TagJobFailure> {
    return new List(this.#transport, this.#path + pathOf`/jobs/${id}/failures`, {}, options);
  }

  /** Changes that the job has made stay. */
  async cancelJob(id: string, options: RequestOptions = {}): Promise<TagJob> {
    return this.#transport.result<TagJob>("POST", this.#path + pathOf`/jobs/${id}/cancel`, options);
  }

  /** Lists the changes of one resource, newest first. */
  history(resource: ResourceName, options: RequestOptions = {}): List<TagChange> {
    return new List(this.#transport, `${this.#path}/history`, { ...resource }, options);
  }

  #write(
    method: "PUT" | "PATCH" | "DELETE",
    body: ResourceName,
    { etag, ...options }: ConditionalOptions,
  ): Promise<TaggedResource> {
    const headers: Record<string, string> =
      etag === undefined ? {} : { "if-match": /[*"]/.test(etag) ? etag : `"${etag}"` };
    return this.#transport.result<TaggedResource>(method, this.#path, { body, headers, ...options });
  }
}
