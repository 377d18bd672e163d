export { createTagsArea } from "./tags-area.ts";
