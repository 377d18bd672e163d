export { createTagsArea, type TagsArea, type TagsAreaParts } from "./tags-area.ts";
