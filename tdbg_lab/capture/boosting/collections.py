"""What is captured of boosted trees, and when."""

from __future__ import annotations

from tdbg_lab.config import CollectionConfig, SaveSchedule

__all__ = ["boosting_collections"]

_OURS = (
    "^feature_importance/",
    "^average_shap(/|$)",
    "^full_shap(/|$)",
    "^trees/",
    "^(predictions|predicted_labels|labels)$",
    "^hyperparameters/",
)


def boosting_collections() -> tuple[CollectionConfig, ...]:
    """The collections, with the names of SageMaker Debugger where it had them.

    Numbers that the library computes anyway are kept every round, the rest every `save_every`.
    """
    every_round = SaveSchedule(every=1)

    def custom(name: str, pattern: str, *, save: SaveSchedule | None = None) -> CollectionConfig:
        return CollectionConfig(name=name, kinds=("custom",), include=(pattern,), values="both", save=save)

    return (
        CollectionConfig(name="metrics", kinds=("loss", "scalar"), save=every_round),
        CollectionConfig(name="losses", kinds=("loss",), save=every_round),
        custom("hyperparameters", "^hyperparameters/", save=SaveSchedule(steps=(0,))),
        custom("feature_importance", "^feature_importance/"),
        custom("predictions", "^predict(ions|ed_labels)$"),
        custom("labels", "^labels$"),
        custom("average_shap", "^average_shap(/|$)"),
        custom("full_shap", "^full_shap(/|$)"),
        custom("trees", "^trees/"),
        CollectionConfig(name="custom", kinds=("custom",), exclude=_OURS, values="both", sample_rows=512),
    )
