import { count } from "../../format/number.ts";
import { TagDifference } from "./tag-list.tsx";
import { resourceKey, type TaggedResource } from "./tagged-resource.ts";

/** The result of one item of a bulk request. */
export interface ItemOutcome {
  readonly success: boolean;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
  readonly result: TaggedResource | null;
}

interface EditPreviewProps {
  readonly resources: readonly TaggedResource[];
  /** In the same order as `resources`. */
  readonly outcomes: readonly ItemOutcome[];
}

const MAX_SHOWN = 50;

export function EditPreview({ resources, outcomes }: EditPreviewProps) {
  const failed = outcomes.filter(({ success }) => !success).length;
  // What cannot be changed comes first: it needs attention.
  const shown = resources
    .map((resource, i) => ({ resource, outcome: outcomes[i] }))
    .sort((a, b) => Number(a.outcome?.success) - Number(b.outcome?.success))
    .slice(0, MAX_SHOWN);
  return (
    <section className="section" aria-labelledby="preview-title">
      <h3 id="preview-title">Preview of changes</h3>
      {failed > 0 && (
        <p className="notice notice-bad" role="alert">
          {count(failed)} of {count(outcomes.length)} resources cannot be changed. See the reason next to each
          one.
        </p>
      )}
      <ul className="preview">
        {shown.map(({ resource, outcome }) => {
          return (
            <li key={resourceKey(resource)}>
              <span>
                {resource.name} <span className="muted small">{resource.type}</span>
              </span>
              {outcome?.success === true ? (
                <TagDifference before={resource.tags} after={outcome.result?.tags ?? {}} />
              ) : (
                <span className="badge badge-bad">{outcome?.errors[0]?.message ?? "rejected"}</span>
              )}
            </li>
          );
        })}
      </ul>
      {resources.length > MAX_SHOWN && (
        <p className="muted">and {count(resources.length - MAX_SHOWN)} more</p>
      )}
    </section>
  );
}
