import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

/** A request is a function in src/api, with its resource's query keys. */
const noRequests = {
  regex: "api/client$",
  importNames: ["api", "data"],
  message: "Requests are functions in src/api.",
};

/** app -> features -> shared, api; and no feature imports another. `up` leads from a file to its feature's folder. */
const layers = (files, up) => ({
  files: [files],
  rules: {
    "no-restricted-imports": [
      "error",
      {
        patterns: [
          {
            regex: `^${up}\\.\\./(?!\\.\\./(api|shared)/)`,
            message: "A feature imports from api, shared and itself only.",
          },
          noRequests,
        ],
      },
    ],
  },
});

export default tseslint.config(
  { ignores: ["dist", "src/api/schema.d.ts"] },
  ...tseslint.configs.strict,
  hooks.configs.flat.recommended,
  {
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off",
      "no-restricted-properties": [
        "error",
        { object: "crypto", property: "randomUUID", message: "Missing by plain http: use api/randomId." },
      ],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
    },
  },
  {
    files: ["src/shared/**", "src/api/**"],
    rules: {
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            { regex: "(features|app)/", message: "shared and api know neither pages nor the application." },
          ],
        },
      ],
    },
  },
  { files: ["src/app/**"], rules: { "no-restricted-imports": ["error", { patterns: [noRequests] }] } },
  layers("src/features/*/*", ""),
  layers("src/features/*/*/*", "\\.\\./"),
);
