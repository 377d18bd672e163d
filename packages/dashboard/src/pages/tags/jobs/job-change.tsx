import type { TagJob } from "@signalbox/client";

/** A patch is described by its tags. */
const OPERATIONS: Readonly<Record<TagJob["operation"], string>> = {
  set: "Replace all tags by",
  patch: "",
  delete: "Remove all tags",
};

/** What a job does to each resource. */
export function JobChange({ job }: { readonly job: TagJob }) {
  return (
    <div className="job-change">
      {OPERATIONS[job.operation] !== "" && <span>{OPERATIONS[job.operation]}</span>}
      {job.operation !== "delete" && (
        <ul className="tag-list">
          {Object.entries(job.tags).map(([key, value]) => (
            <li key={key} className={`tag tag-${value === null ? "removed" : "added"}`}>
              <span className="tag-key">{key}</span>
              <span className="tag-value">{value ?? "remove"}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
