import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMay } from "../../api/accounts/session";
import { addComment, commentsQuery, deleteComment, editComment } from "../../api/comments";
import type { Marked } from "../../api/marks";
import { Loaded } from "../Feedback";
import { CommentThread } from "./CommentThread";

interface Properties {
  project: string;
  type: Marked;
  item: string;
  /** As the input names it: `this run`. */
  about: string;
}

/** The comments on a run, or on another thing with a page of its own. */
export function ItemComments({ project, type, item, about }: Properties) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const query = commentsQuery(project, type, item);
  return (
    <Loaded query={useQuery(query)} rows={1}>
      {(comments) => (
        <CommentThread
          project={project}
          comments={comments}
          about={about}
          mayWrite={mayWrite}
          add={(text) => addComment(project, type, item, text)}
          edit={(comment, text) => editComment(project, comment, text)}
          remove={(comment) => deleteComment(project, comment)}
          onChange={() => void client.invalidateQueries({ queryKey: query.queryKey })}
        />
      )}
    </Loaded>
  );
}
