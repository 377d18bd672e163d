import DefaultTheme from "vitepress/theme";
import { h } from "vue";
import "./brand.css";
import picture from "../../images/analytics.png";

export default {
  extends: DefaultTheme,
  // The picture of README, from `npm run docs -- screenshots`; the option of the home page takes files of `public` only.
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      "home-hero-image": () =>
        h("img", {
          class: "home-picture",
          src: picture,
          alt: "Usage by provider over a day, in the dashboard",
        }),
    }),
};
