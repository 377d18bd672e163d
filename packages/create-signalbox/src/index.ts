/** Creates projects for Signalbox: for `npm create signalbox` and for `signalbox init`. */
export { askFolder } from "./ask-folder.ts";
export { createProject, type CreatedProject, ProjectError } from "./create-project.ts";
export { describeProject } from "./describe-project.ts";
