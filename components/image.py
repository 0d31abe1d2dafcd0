"""How every component is built: on our image, which holds kfp and aftershock, so nothing is installed at run time."""

import functools
import os

from kfp import dsl

from aftershock import __version__

# "python" in the tag: the local runner warns about images whose name does not say it.
IMAGE = os.environ.get("AFTERSHOCK_IMAGE", f"aftershock:{__version__}-python3.11")

component = functools.partial(dsl.component, base_image=IMAGE, packages_to_install=[], install_kfp_package=False)
