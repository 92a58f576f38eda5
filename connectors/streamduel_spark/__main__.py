"""`python -m streamduel_spark`, the `streamduel-spark` script, and the file for `spark-submit`."""

from streamduel_spark.command import main

if __name__ == "__main__":
    main()
