// Package ablation is Alidade's vocabulary: recipes, studies, factors, arms,
// runs, attempts, points and the one table of run moves. Start with [Expand],
// which turns a [Study] into the runs to queue, and [State.Next], which says
// how a run's state may change. It imports the standard library only and does
// no I/O: files, SQL, HTTP and processes live in the packages that import it.
//
// The words, used everywhere in code, pages, files and docs:
//
//   - Recipe: all that a trainer is told.
//   - Study: a question; a base recipe, factors with levels, a design, seeds
//     and a primary metric.
//   - Factor, Level: an axis of the study (any recipe key) and its values.
//   - Arm: one combination of levels, hence one recipe.
//   - Run: one arm with one seed.
//   - Attempt: one execution of a run's trainer.
//   - Point: one metric value of a run at a step; NaN and Inf are data.
//   - Episode, Trajectory: one interaction of a policy with an environment,
//     and its record.
//   - Group: the trajectories sampled for one prompt at one step.
//   - Verdict: the outcome of one constraint for one plan, with the reason.
//   - Dataset, Checkpoint, Artifact: content-addressed products of a stage.
//   - Device, Lease: a GPU or CPU slot and its exclusive use by an attempt.
//   - Report: what is computed from a study's data, then rendered.
package ablation
