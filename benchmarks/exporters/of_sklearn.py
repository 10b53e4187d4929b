"""Estimators of scikit-learn, fitted to a small drawn problem, in ONNX's own operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exporters.architecture import Architecture, Given

FEATURES, CLASSES = 12, 3
_NUMBERS = (Given("numbers", ("batch", FEATURES)),)


def sample(seed: int = 0, count: int = 120) -> tuple[Any, Any]:
    """Points of three clouds, and their classes."""
    generator = np.random.default_rng(seed)
    classes = generator.integers(0, CLASSES, count)
    centres = generator.normal(0, 2, (CLASSES, FEATURES))
    points = centres[classes] + generator.normal(0, 1, (count, FEATURES))
    return points.astype(np.float32), classes


def _fitted(make: Callable[[], Any]) -> Any:
    return make().fit(*sample())


def _perceptron() -> Any:
    from sklearn.neural_network import MLPClassifier

    return _fitted(lambda: MLPClassifier((32, 16), max_iter=50, random_state=0))


def _regressor() -> Any:
    from sklearn.neural_network import MLPRegressor

    return _fitted(lambda: MLPRegressor((32,), activation="tanh", max_iter=50, random_state=0))


def _components() -> Any:
    from sklearn.decomposition import PCA

    return _fitted(lambda: PCA(4, random_state=0))


def _means() -> Any:
    from sklearn.cluster import KMeans

    return _fitted(lambda: KMeans(3, n_init=1, random_state=0))


def _mixture() -> Any:
    from sklearn.mixture import GaussianMixture

    return _fitted(lambda: GaussianMixture(3, random_state=0))


def _neighbours() -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    return _fitted(lambda: KNeighborsRegressor(3))


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return _fitted(lambda: LogisticRegression(max_iter=200))


def _pipeline() -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return _fitted(lambda: make_pipeline(StandardScaler(), PCA(6, random_state=0), Ridge()))


def _bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return _fitted(GaussianNB)


def _process() -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor

    return GaussianProcessRegressor(random_state=0).fit(*sample(count=24))


def architectures() -> list[Architecture]:
    """All of them."""
    rows = {
        "perceptron": _perceptron,
        "regressor": _regressor,
        "pca": _components,
        "kmeans": _means,
        "mixture": _mixture,
        "neighbours": _neighbours,
        "logistic": _logistic,
        "pipeline": _pipeline,
        "bayes": _bayes,
        "process": _process,
    }
    return [
        Architecture(f"sk_{name}", "sklearn", "table", build, _NUMBERS)
        for name, build in rows.items()
    ]
