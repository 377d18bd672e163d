export const fromIndex = "index";
