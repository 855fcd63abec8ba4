import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";
import type { Marked } from "./marks";

export type Comment = Schemas["CommentOut"];

const COMMENTS = "/api/v1/projects/{project}/marks/{type}/{item}/comments" as const;
const COMMENT = "/api/v1/projects/{project}/comments/{item_comment}" as const;

/** The comments on a thing, the oldest first. */
export const commentsQuery = (project: string, type: Marked, item: string) =>
  queryOptions({
    queryKey: [project, "comments", type, item],
    queryFn: () => data(api.GET(COMMENTS, { params: { path: { project, type, item } } })),
    // Comments have no event.
    refetchInterval: 15_000,
  });

export const addComment = (project: string, type: Marked, item: string, text: string) =>
  data(api.POST(COMMENTS, { params: { path: { project, type, item } }, body: { text } }));

export const editComment = (project: string, item_comment: string, text: string) =>
  data(api.PATCH(COMMENT, { params: { path: { project, item_comment } }, body: { text } }));

export const deleteComment = (project: string, item_comment: string) =>
  data(api.DELETE(COMMENT, { params: { path: { project, item_comment } } }));
